"""Removes the folder of a rendition of a files writer, whole."""

from dataclasses import dataclass

from tidemark.log.files.folder import Folder
from tidemark.writers.files.kind import FilesDeclaration
from tidemark.writers.removal import DropOption, PlaceContents


@dataclass(frozen=True)
class FilesRemoval:
    """See ``PlaceRemoval``.

    Attributes:
        pipeline: The pipeline's name, for errors.
        declared: The writer at the rendition's place.
    """

    pipeline: str
    declared: FilesDeclaration

    @property
    def option(self) -> DropOption | None:
        """None: the folder is the writer's own."""
        return None

    @property
    def folder(self) -> Folder:
        """The folder."""
        return Folder(f"{self.pipeline}/{self.declared.name}", self.declared.path)

    def look(self) -> PlaceContents:
        """See ``PlaceRemoval.look``."""
        found = self.folder.walk("")
        details = f"{len(found):,} files, {sum(one.bytes for one in found):,} bytes"
        return PlaceContents(f"folder {self.declared.path}", bool(self.folder.entries()), details)

    def drop(self) -> None:
        """See ``PlaceRemoval.drop``."""
        self.folder.remove_all()
