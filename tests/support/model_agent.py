"""What an agent would stream, as a model: a list of operations, and the bytes for a request at an id.

Ids: ``o1.N`` after N operations; ``r1.T.K`` in a replication of the state after T operations, with K objects
sent. ``open`` of a replication has an id that continues behind ``reset``, so that a consumer which takes it
for its position is found out.
"""

from dataclasses import dataclass, field

TIME = "2026-01-02T03:04:05.678Z"


def block(event: str, event_id: str | None, data: str = "{}") -> bytes:
    """One event as bytes."""
    first = "" if event_id is None else f"id: {event_id}\n"
    return f"{first}event: {event}\ndata: {data}\n\n".encode()


def operation(event: str, name: str, event_id: str | None, type_: str = "video") -> bytes:
    """One operation as bytes."""
    data = f'{{"timestamp":"{TIME}","parents":["user/1"],"type":"{type_}","id":"{name}"}}'
    return block(event, event_id, data)


def opened(mode: str, event_id: str | None) -> bytes:
    return block("open", event_id, f'{{"mode":"{mode}"}}')


def state_of(log: list[tuple[str, str]]) -> set[str]:
    """The objects there are after these operations."""
    objects: dict[str, None] = {}
    for event, name in log:
        if event == "delete":
            objects.pop(name, None)
        else:
            objects[name] = None
    return set(objects)


@dataclass
class ModelAgent:
    """An agent and its source.

    Attributes:
        log: Every operation there was, as (event, object).
        kept: Operations before this number are gone: a position before it is answered with ``reset``.
    """

    log: list[tuple[str, str]] = field(default_factory=list)
    kept: int = 0

    def stream(self, last_event_id: str | None) -> bytes:
        """The stream for a request, up to the newest operation."""
        now = len(self.log)
        match (last_event_id or "live").split("."):
            case ["live"]:
                return opened("live", f"o1.{now}")
            case ["0"]:
                return opened("replication", f"r1.{now}.0") + self._replication(now, 0, reset=True)
            case ["r1", at, sent]:
                return opened("exact", last_event_id) + self._replication(int(at), int(sent), reset=False)
            case ["o1", at] if int(at) >= self.kept:
                return opened("exact", last_event_id) + self._operations(int(at))
            case _:
                return opened("reset", f"r1.{now}.0") + self._replication(now, 0, reset=True)

    def _replication(self, at: int, sent: int, reset: bool) -> bytes:
        objects = sorted(state_of(self.log[:at]))
        first = block("reset", f"r1.{at}.0") if reset else b""
        rows = [
            operation("insert", name, f"r1.{at}.{number}")
            for number, name in enumerate(objects, 1)
            if number > sent
        ]
        return first + b"".join(rows) + block("live", f"o1.{at}") + self._operations(at)

    def _operations(self, at: int) -> bytes:
        return b"".join(
            operation(event, name, f"o1.{number}")
            for number, (event, name) in enumerate(self.log[at:], at + 1)
        )
