"""Events of a journal as lines: columns for people, JSON for programs."""

from base64 import b64encode

from tidemark.client.events import JournalEvent
from tidemark.journal.codec.json_text import canonical

CUT = 80
"""Characters of a payload that a line for people shows."""
_LINE = "{:>8}  {:<23}  {:>14}  {}"
EVENT_HEADINGS = _LINE.format("event", "sent", "at", "payload")


def event_line(event: JournalEvent) -> str:
    """An event as a line of columns, its payload cut and without control characters."""
    content = event.content
    payload = f"{len(content)} bytes" if isinstance(content, bytes) else content or "–"
    payload = payload if len(payload) <= CUT else f"{payload[:CUT]}…"
    tags = f"  [{', '.join(sorted(event.tags))}]" if event.tags else ""
    sent = event.timestamp.strftime("%Y-%m-%d %H:%M:%S UTC")
    shown = "".join(letter if letter.isprintable() else "·" for letter in payload + tags)
    return _LINE.format(event.seq_nr, sent, f"{event.partition}@{event.offset}", shown)


def event_json(event: JournalEvent) -> str:
    """An event as one line of canonical JSON; binary payloads as base64."""
    payload = event.payload
    metadata = event.metadata
    return canonical(
        {
            "seq_nr": event.seq_nr,
            "timestamp": event.timestamp.isoformat(timespec="milliseconds"),
            "partition": event.partition,
            "offset": event.offset,
            "tags": sorted(event.tags),
            "payload_type": event.payload_type,
            "payload": {"base64": b64encode(payload).decode()} if isinstance(payload, bytes) else payload,
            "metadata": metadata.header,
            "payload_metadata": metadata.payload,
            "expire_after": metadata.expire_after,
            "headers": dict(event.headers),
            "origin": event.origin,
            "version": event.version,
        }
    )
