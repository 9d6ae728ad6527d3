"""The last binding of a topic that was deleted or recreated, kept with the accepted loss.

Clients of a journal need it to know which topic the tables were filled from, and they may not reach the log's
folder. So it is stored in the control plane when the loss is accepted, and for losses that earlier versions
accepted before the first rows of bindings are removed.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidemark.consensus.update import retry_outpaced
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.loss import AcceptedLoss
from tidemark.log.model.recreated_topics import WHOLE_TOPIC
from tidemark.log.state.control import BindingsHead, LogControl


def with_last_bound(control: LogControl, losses: Sequence[AcceptedLoss]) -> list[AcceptedLoss]:
    """The losses, those of whole topics with the last binding of the old topic."""
    known: dict[tuple[str, int, int], tuple[int, str | None]] = {}
    found = []
    for one in losses:
        if one.loss.kind in WHOLE_TOPIC and one.bound_t is None:
            place = one.loss.topic, one.after, one.found
            if place not in known:
                last = Bindings(control).last_of(*place)
                known[place] = (last.t, last.topic_ids.get(one.loss.topic)) if last else (0, None)
            bound_t, bound_id = known[place]
            found.append(replace(one, bound_t=bound_t, bound_id=bound_id))
        else:
            found.append(one)
    return found


def record_last_bound(control: LogControl) -> None:
    """Add what losses that earlier versions accepted do not have."""

    def attempt(head: BindingsHead) -> None:
        unknown = [
            one for one in control.accepted_losses() if one.loss.kind in WHOLE_TOPIC and one.bound_t is None
        ]
        if unknown:
            control.replace_losses(head, with_last_bound(control, unknown))

    retry_outpaced(control.bindings_head, attempt)
