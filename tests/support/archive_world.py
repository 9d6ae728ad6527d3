"""A log whose bindings leave the control plane: small lists, captures without files, a consumer that is told
how far it is."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.log_samples import SEGMENT_BYTES, captured_of, given_available
from tests.support.log_world import LogWorld

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus, ObjectKey, ObjectKind
from tidemark.log.bind import bind
from tidemark.log.bindings.archive import Archiving, archive_bindings, remove_archived
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.binding_list import BindingLists, ListSizes
from tidemark.log.model.manifest import Manifest
from tidemark.log.publish import publish, read_log
from tidemark.log.state.control import LogHead

KEEP = 100
"""How long bindings stay, in µs."""
SMALL = ListSizes(bindings=4, span=40, fanout=3)
BINDINGS = ObjectKey(ObjectKind.BINDINGS, "orders")


@dataclass
class ArchiveWorld(LogWorld):
    """Every run binds one record at a time that is 10 µs later."""

    root: Path
    consensus: Consensus = field(default_factory=MemoryConsensus)
    passed: int = -1
    """The last id that every consumer has finished with."""
    now: int = 0
    records: int = 0
    sizes: ListSizes = SMALL
    keep: int = KEEP

    @property
    def door(self) -> Bindings:
        return Bindings(self.control, self.folder)

    @property
    def lists(self) -> BindingLists:
        return read_log(self.control, self.folder).bindings

    def bind(self, run_id: str, records: int = 1) -> Binding | None:
        """A run's binding, after further records have arrived."""
        self.records += records
        self.now += 10
        return bind(self.control, given_available(orders=self.records), 1_000_000, self.now, run_id)

    def publish(self, binding: Binding) -> None:
        """Capture a binding without a file, and publish it."""
        captured = captured_of(binding)
        self.folder.write_captured(captured)
        self.folder.write_audit(AuditRecord(binding.t, captured.digest, ()))
        archiving = Archiving(self.keep, lambda: self.passed, sizes=self.sizes)
        publish(self.control, self.folder, binding, SEGMENT_BYTES, self.now, archiving)

    def replicate(self, count: int, begin: int = 0, *, is_passed: bool = True) -> list[Binding]:
        """Runs ``run-0``, ``run-1``, …, each from bind to publish; consumers pass what is published."""
        found = []
        for number in range(begin, begin + count):
            binding = self.bind(f"run-{number}")
            assert binding is not None
            if is_passed:
                self.passed = binding.end
            self.publish(binding)
            found.append(binding)
        return found

    def replicate_many(self, count: int, together: int = 25) -> None:
        """As ``replicate``, but ``together`` bindings are published at once and no capture is recorded."""
        head, begin = self.control.bindings_head(), self.records
        manifest = read_log(self.control, self.folder)
        for number in range(begin, begin + count):
            self.now += 10
            slices = (Slice("orders", 0, number, number + 1),)
            binding = Binding(self.now, number, slices, f"run-{number}", (("orders", "first orders"),))
            self.control.add_binding(head, binding)
            head = self.control.bindings_head()
            manifest = manifest.with_binding(binding.t, binding.end, (), SEGMENT_BYTES)
            if (number + 1) % together == 0:
                manifest = self.make_current(manifest)
                head = self.control.bindings_head()
        self.records += count
        self.make_current(manifest)

    def make_current(self, manifest: Manifest, *, is_removed: bool = True) -> Manifest:
        """Archive what is old, make the manifest the log, and remove the rows of what was archived."""
        self.passed = manifest.end
        archiving = Archiving(self.keep, lambda: self.passed, sizes=self.sizes)
        lists = archive_bindings(self.control, str(self.root), manifest.bindings, manifest.t, archiving)
        listed = replace(manifest, bindings=lists)
        head, named = self.control.log_head(), self.folder.write_manifest(listed)
        self.control.replace_log(head.version, LogHead.naming(listed, *named, str(self.root)))
        if is_removed:
            remove_archived(self.control, str(self.root), lists)
        return listed

    def rows(self, prefix: str) -> list[str]:
        """The rows of the bindings object that begin so."""
        return list(self.consensus.scan(BINDINGS, prefix, limit=100_000).rows)
