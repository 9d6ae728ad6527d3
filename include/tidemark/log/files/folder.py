"""A folder whose files appear whole and never change.

Files are written under a name of their own and renamed. Finding the final name taken is not an error but an
earlier attempt at the same content, which is verified and kept; other content is refused. Works on any file
system pyarrow can reach.
"""

import io
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pyarrow import fs

from tidemark.log.errors import FileDamaged, FileMissing, FolderUnusable
from tidemark.log.files.digest_cache import Condition

STAGING = "staging"


class StoredFile(NamedTuple):
    """A file as a folder lists it."""

    path: str
    bytes: int


class Digesting(io.RawIOBase):
    """A sink that knows the size and digest of what went through it, so that nothing is read twice."""

    def __init__(self, sink: Any, blamed: Callable[[], AbstractContextManager[None]]) -> None:
        self._sink, self._blamed = sink, blamed
        self._digest, self.size = sha256(), 0

    @property
    def digest(self) -> str:
        """The digest of everything written so far."""
        return self._digest.hexdigest()

    def writable(self) -> bool:
        """Tells the io machinery that this is a sink."""
        return True

    def write(self, data: Any) -> int:
        """Pass the bytes on."""
        view = memoryview(data)
        with self._blamed():
            self._sink.write(view)
        self._digest.update(view)
        self.size += view.nbytes
        return view.nbytes


class Staged:
    """A file being written; ``settle`` gives it its final name, otherwise it disappears."""

    def __init__(self, sink: Digesting) -> None:
        self.sink, self.final = sink, ""

    def settle(self, path: str) -> None:
        """The name the file gets when the block ends without an error."""
        self.final = path


class Folder:
    """One folder, and whose it is (for messages)."""

    def __init__(self, owner: str, root: str) -> None:
        self.owner = owner
        self._fs: fs.FileSystem
        self._root: str
        self._given = root
        is_uri = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", root)
        self._fs, self._root = fs.FileSystem.from_uri(root) if is_uri else (fs.LocalFileSystem(), root)

    @contextmanager
    def stage(self, area: str = "", *, replacing: bool = False) -> Iterator[Staged]:
        """A new file under a name that nobody else uses; two attempts never write to the same one."""
        path = self.at(posixpath.join(STAGING, area, uuid4().hex))
        with self._blamed():
            self._fs.create_dir(posixpath.dirname(path), recursive=True)
            raw = self._fs.open_output_stream(path)
        try:
            with raw:
                staged = Staged(Digesting(raw, self._blamed))
                yield staged
            if staged.final:
                self._settle(path, staged.final, staged.sink.digest, replacing)
        finally:
            if self._fs.get_file_info(path).type == fs.FileType.File:
                self._fs.delete_file(path)

    def new_area(self, area: str) -> str:
        """A folder for files that somebody else writes, under a name that no other attempt has."""
        path = posixpath.join(STAGING, area, uuid4().hex)
        with self._blamed():
            self._fs.create_dir(self.at(path), recursive=True)
        return path

    def adopt(self, path: str, final: str, digest: str) -> None:
        """Give a file that somebody else has written in an area its final name."""
        self._settle(self.at(path), final, digest, replacing=False)

    def replace_end(self, path: str, length: int, end: bytes) -> None:
        """Give a file that is still in its area another end of the same length."""
        if isinstance(self._fs, fs.LocalFileSystem):
            with self._blamed(), Path(self.at(path)).open("r+b") as file:
                file.seek(-length, os.SEEK_END)
                file.write(end)
            return
        # Elsewhere a file cannot be changed, only written anew.
        other = f"{path}.ended"
        with self.open(path) as source, self._blamed(), self._fs.open_output_stream(self.at(other)) as sink:
            left = source.size() - length
            while left:
                chunk = source.read(min(left, 1 << 20))
                left -= len(chunk)
                sink.write(chunk)
            sink.write(end)
        self._fs.move(self.at(other), self.at(path))

    def _settle(self, path: str, final: str, digest: str, replacing: bool) -> None:
        if self.exists(final) and not replacing:
            self.verify(final, digest)
            return
        self._persist(path)
        with self._blamed():
            self._fs.create_dir(posixpath.dirname(self.at(final)), recursive=True)
            self._fs.move(path, self.at(final))
        self._persist(posixpath.dirname(self.at(final)))

    def list_files(self, area: str, suffix: str) -> list[str]:
        """The files of an area that end like this, in the order of their names."""
        found = self._fs.get_file_info(fs.FileSelector(self.at(area), allow_not_found=True))
        return sorted(posixpath.join(area, one.base_name) for one in found if one.base_name.endswith(suffix))

    def sizes(self, area: str = "") -> dict[str, int]:
        """The names of the files right in an area, and how many bytes they have."""
        selector = fs.FileSelector(self.at(area), allow_not_found=True)
        with self._blamed():
            found = self._fs.get_file_info(selector)
        return {one.base_name: int(one.size) for one in found if one.type == fs.FileType.File}

    def walk(self, area: str) -> list[StoredFile]:
        """All files of an area and of those in it, in the order of their names."""
        selector = fs.FileSelector(self.at(area), allow_not_found=True, recursive=True)
        found = (one for one in self._fs.get_file_info(selector) if one.type == fs.FileType.File)
        return sorted(StoredFile(posixpath.relpath(one.path, self._root), int(one.size)) for one in found)

    def remove(self, path: str) -> None:
        """Remove a file, unless it is gone already."""
        with self._blamed(), suppress(FileNotFoundError):
            self._fs.delete_file(self.at(path))

    def remove_area(self, area: str) -> None:
        """Remove an area with what is left in it."""
        with suppress(FileNotFoundError):  # somebody else has swept it
            self._fs.delete_dir(self.at(area))

    def entries(self) -> list[str]:
        """The names of what is in the folder itself, in order; nothing where there is no folder."""
        found = self._fs.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return sorted(str(one.base_name) for one in found)

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Say which folder cannot be written, and why."""
        try:
            yield
        except OSError as error:
            raise FolderUnusable(self.owner, self._root, error.strerror or str(error)) from None

    def _persist(self, path: str) -> None:
        """What is called durable must survive a power cut: a local disk is told so, a store knows."""
        if not isinstance(self._fs, fs.LocalFileSystem):
            return
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def sweep(self, is_over: Callable[[str], bool]) -> None:
        """Remove what attempts that were killed have left in the areas that nobody writes to any more."""
        areas = self._fs.get_file_info(fs.FileSelector(self.at(STAGING), allow_not_found=True))
        for area in areas:
            if area.type == fs.FileType.Directory and is_over(area.base_name):
                self.remove_area(posixpath.join(STAGING, area.base_name))

    def write_once(self, path: str, data: bytes, area: str = "") -> None:
        """Write a small file whole, unless it is there already with the same content."""
        with self.stage(area) as staged:
            staged.sink.write(data)
            staged.settle(path)

    def replace(self, path: str, data: bytes, area: str = "") -> None:
        """Write a small file whole, in the place of what was there."""
        with self.stage(area, replacing=True) as staged:
            staged.sink.write(data)
            staged.settle(path)

    def verify(self, path: str, digest: str) -> None:
        """Refuse a file whose bytes are not the recorded ones."""
        found = self.digest(path)
        if found != digest:
            raise FileDamaged(self.owner, self.at(path), digest, found)

    def digest(self, path: str) -> str:
        """The digest of a file's bytes."""
        found = sha256()
        with self.open(path) as source:
            while chunk := source.read(1 << 20):
                found.update(chunk)
        return found.hexdigest()

    def size(self, path: str) -> int:
        """How many bytes a file has."""
        return int(self._fs.get_file_info(self.at(path)).size)

    def condition(self, path: str) -> Condition:
        """What the file system says of a file; refuses one that is missing."""
        found = self._fs.get_file_info(self.at(path))
        if found.type != fs.FileType.File:
            raise FileMissing(self.owner, self.at(path))
        return Condition(int(found.size), found.mtime_ns)

    def read(self, path: str) -> bytes:
        """A small file's content."""
        with self.open(path) as source:
            return bytes(source.read())

    def open(self, path: str) -> Any:
        """A file to read from, any part of it."""
        try:
            return self._fs.open_input_file(self.at(path))
        except (FileNotFoundError, NotADirectoryError):
            raise FileMissing(self.owner, self.at(path)) from None

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return bool(self._fs.get_file_info(self.at(path)).type == fs.FileType.File)

    def address(self, path: str) -> str:
        """The whole path as others find it: with the scheme and the host, where the folder has them."""
        return posixpath.join(self._given, path)

    def at(self, path: str) -> str:
        """The whole path, for the file system and for messages."""
        return posixpath.join(self._root, path)
