"""``/status`` and ``/metrics``: what an agent has done and does now.

Neither has a secret, or anything about a single client.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.oplog.agent.streams.service import StreamFigures

OK, DEGRADED, STOPPING = "OK", "degraded", "stopping"
METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
PREFIX = "tidemark_oplog_"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure as Prometheus reads it."""

    name: str
    meaning: str
    value: float
    is_counter: bool = False

    def lines(self) -> Iterator[str]:
        """Its lines in Prometheus' text format."""
        name = PREFIX + self.name + ("_total" if self.is_counter else "")
        yield f"# HELP {name} {self.meaning}"
        yield f"# TYPE {name} {'counter' if self.is_counter else 'gauge'}"
        yield f"{name} {self.value:g}" if self.value % 1 else f"{name} {int(self.value)}"


COUNTERS: Mapping[str, str] = {
    "events_received": "Operations that arrived by UDP or HTTP.",
    "events_ingested": "Operations that Kafka has acknowledged.",
    "events_error": "Operations that were refused because they are not valid.",
    "events_discarded": "Datagrams that arrived while the queue was full.",
    "events_failed": "Operations that Kafka refused, or whose producer had to be replaced.",
    "events_sent": "Events that were sent to clients.",
    "connections": "Streams that were ever opened.",
    "slow": "Streams that were ended because their client fell behind.",
    "stream_records": "Records of the topic that streams have read.",
    "stream_void": "Corrections among them that change nothing.",
    "stream_bad": "Records among them that are no operations.",
    "udp_kernel_drops": "Datagrams that the kernel dropped before the agent could take them.",
    "http_connections_refused": "HTTP connections that were refused because there were too many.",
    "http_connections_cut": "HTTP connections that were closed because they broke a limit.",
}
GAUGES: Mapping[str, str] = {
    "queue_size": "Operations that wait to be handed to Kafka's client.",
    "queue_max_size": "Operations that may wait or be in flight.",
    "events_in_flight": "Operations that Kafka's client has, without an acknowledgement.",
    "clients": "Streams that are open.",
    "stream_behind": "Offsets that the streams are behind the topic.",
    "stream_is_live": "1 while the streams follow the topic.",
    "stream_readers": "Clients for which Kafka is being read.",
    "stream_scans": "Clients for which the collection is being read.",
    "udp_buffer_bytes": "Bytes that the kernel keeps for UDP.",
    "http_connections": "HTTP connections that are open.",
    "uptime_seconds": "Seconds since the agent was started.",
}


_OF_STREAMS: Mapping[str, str] = {
    "received": "stream_records",
    "void": "stream_void",
    "bad": "stream_bad",
    "behind": "stream_behind",
    "is_live": "stream_is_live",
    "readers": "stream_readers",
    "scans": "stream_scans",
}


def stream_figures(figures: StreamFigures | None) -> dict[str, Any]:
    """The figures of streams as ``/status`` has them; of an agent without streams, those of the contract."""
    if figures is None:
        return {"clients": 0, "connections": 0, "events_sent": 0}
    return {_OF_STREAMS.get(name, name): value for name, value in asdict(figures).items()}


def metrics(status: Mapping[str, Any]) -> bytes:
    """The figures of a status in Prometheus' text format."""
    found: list[Metric] = []
    for known, is_counter in ((COUNTERS, True), (GAUGES, False)):
        for name, meaning in known.items():
            if isinstance(value := status.get(name), int | float):
                found.append(Metric(name, meaning, float(value), is_counter))
    found.append(Metric("up", "1 while the agent is healthy.", float(status.get("status") == OK)))
    return "".join(f"{line}\n" for metric in found for line in metric.lines()).encode()
