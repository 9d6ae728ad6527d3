"""An append's payload: chooses between the binary and the JSON codec."""

from typing import Literal

from tidemark.journal.codec.binary import decode_binary, encode_binary
from tidemark.journal.codec.json_payload import decode_json, encode_json, json_sequence_numbers
from tidemark.journal.errors import Unwritable
from tidemark.journal.events import Events

Form = Literal["binary", "json"]


def decode(form: Form, data: bytes) -> Events:
    """The events of a payload; ``form`` is the ``payloadType`` of the header. Raises Undecodable."""
    return decode_json(data) if form == "json" else decode_binary(data)


def sequence_numbers(form: Form, data: bytes) -> list[int]:
    """The sequence numbers of a payload's events. Refuses exactly what ``decode`` refuses, and is faster."""
    if form == "json":
        return json_sequence_numbers(data)
    return [event.seq_nr for event in decode_binary(data).events]


def encode(events: Events) -> tuple[Form, bytes]:
    """The form that kafka-journal would choose, and the payload in that form.

    The form is JSON unless an event's payload is binary. Raises Unwritable where there are no events.
    """
    if not events.events:
        raise Unwritable("an append without events")
    if any(event.payload_type == "binary" for event in events.events):
        return "binary", encode_binary(events)
    return "json", encode_json(events)
