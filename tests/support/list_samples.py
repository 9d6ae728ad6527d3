"""Lists of segments in memory, for tests of manifests without a folder."""

from tidemark.log.model.manifest import ListLine, Segment, digest_of
from tidemark.log.model.segment_list import index_from_bytes, segment_from_bytes


class ListsInMemory:
    """Keeps lists by path, and counts what is read and written."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.read: list[str] = []

    def put(self, data: bytes) -> tuple[str, str]:
        path = f"lists/{len(self.content)}"
        self.content[path] = data
        return path, digest_of(data)

    def read_segment(self, line: ListLine) -> Segment:
        return segment_from_bytes(self._read(line))

    def read_index(self, line: ListLine) -> tuple[ListLine, ...]:
        return index_from_bytes(self._read(line))

    def _read(self, line: ListLine) -> bytes:
        self.read.append(line.path)
        assert digest_of(self.content[line.path]) == line.digest
        return self.content[line.path]
