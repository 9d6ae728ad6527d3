"""The JSON payload of an append, in both directions.

Reads what either of the original's writers produces: one leaves absent members out, the other writes them as
null. Writes the first form. A JSON payload that is null cannot be told from no payload; it is read as none.
"""

from tidemark.journal.errors import Undecodable, Unwritable
from tidemark.journal.events import Event, Events, read_metadata
from tidemark.journal.jsontext import LONG_MAX, canonical, parse, sequence_number, shown, storable


def decode_json(data: bytes) -> Events:
    """The events of a JSON payload."""
    document = parse(data)
    if type(document) is not dict:
        raise Undecodable(f"JSON payload: must be an object, not {shown(document)}")
    items = document.get("events")
    if type(items) is not list or not items:
        raise Undecodable(f"JSON payload: events must be an array with something in it, not {shown(items)}")
    return Events(tuple([_event(item) for item in items]), read_metadata(document.get("metadata")))


def _event(item: object) -> Event:
    if type(item) is not dict:
        raise Undecodable(f"JSON payload: an event must be an object, not {shown(item)}")
    seq_nr = sequence_number(item.get("seqNr"), "seqNr")
    tags = _tags(item.get("tags"))
    payload_type = item.get("payloadType")
    payload = item.get("payload")
    if payload_type == "json" or payload_type is None:
        if payload is None:
            return Event(seq_nr, tags)
        return Event(seq_nr, tags, "json", canonical(payload))
    if payload_type != "text":
        raise Undecodable(f"JSON payload: payloadType must be json or text, not {shown(payload_type)}")
    if payload is None:
        return Event(seq_nr, tags)
    if type(payload) is not str:
        raise Undecodable(f"JSON payload: a text payload must be text, not {shown(payload)}")
    return Event(seq_nr, tags, "text", storable(payload))


def _tags(value: object) -> tuple[str, ...]:
    if type(value) is not list:
        raise Undecodable(f"JSON payload: tags must be an array, not {shown(value)}")
    for tag in value:
        if type(tag) is not str:
            raise Undecodable(f"JSON payload: a tag must be text, not {shown(tag)}")
    if len(value) > 1:
        value = dict.fromkeys(value)
    return tuple([tag if tag.isascii() else storable(tag) for tag in value])


def encode_json(events: Events) -> bytes:
    """Compact, members in the order of the original's writer."""
    items = ",".join(map(_encode_event, events.events))
    return f'{{"events":[{items}],"metadata":{events.metadata.text}}}'.encode()


def _encode_event(event: Event) -> str:
    if not 1 <= event.seq_nr <= LONG_MAX:
        raise Unwritable(f"sequence number {event.seq_nr}")
    text = f'{{"seqNr":{event.seq_nr},"tags":{canonical(list(event.tags))}'
    if event.payload_type is None:
        return text + "}"
    if not isinstance(event.payload, str):
        raise Unwritable(
            f"a JSON payload cannot carry the {event.payload_type} payload of event {event.seq_nr}"
        )
    payload = event.payload if event.payload_type == "json" else canonical(event.payload)
    return f'{text},"payloadType":"{event.payload_type}","payload":{payload}}}'
