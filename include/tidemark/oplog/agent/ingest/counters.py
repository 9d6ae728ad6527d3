"""What became of the operations that an agent has received. Counters begin at 0 with the process."""

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class IngestCounters:
    """Every operation is in exactly one place.

    ``received = ingested + error + discarded + failed + queued + in flight``, where the last two are figures
    of the queue.

    Attributes:
        received: Datagrams, and operations of HTTP requests.
        ingested: Acknowledged by Kafka.
        error: Refused, because they are not valid.
        discarded: Datagrams that came while the queue was full.
        failed: Refused by Kafka, or unacknowledged by a producer that had to be replaced.
    """

    received: int = 0
    ingested: int = 0
    error: int = 0
    discarded: int = 0
    failed: int = 0

    def figures(self) -> dict[str, int]:
        """As ``/status`` has them."""
        return {f"events_{name}": value for name, value in asdict(self).items()}
