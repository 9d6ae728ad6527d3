"""What decides whether the next rendition of a writer can be built now, read from log and control plane."""

from tidemark.clock import wall_clock
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.output import WriterOutput
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.writer import Writer
from tidemark.log.model.manifest import JOURNAL
from tidemark.outputs.model.building import BuildNeeds, CompactedPart, buildable
from tidemark.outputs.model.consumer_name import consumer_name


def since_of_next(writer: Writer, log: PublishedLog, positions: Positions) -> int:
    """The first time that a rendition could answer for that is built now; raises ``NotBuildable``.

    ``writer`` is the writer as the file declares it, at the place of the new rendition.
    """
    output = WriterOutput.of(writer, log, positions, wall_clock)
    below = log.manifest.compacted_below
    compacted = CompactedPart(below, log.manifest.policies, output.since())
    refusal = writer.refuses_compacted({}, is_begun=False) if below else None
    needs = BuildNeeds(writer.whole_after, refusal, {*writer.whole_after} <= {JOURNAL})
    found = output.store.load()
    names = [consumer_name(output.name, one.number) for one in found.renditions] if found else []
    acknowledged = {id_ for name in names for id_ in positions.acknowledged(name)} if below else set()
    return buildable(positions.pipeline, output.name, compacted, needs, acknowledged)
