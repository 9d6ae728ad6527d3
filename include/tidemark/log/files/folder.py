"""A folder whose files appear atomically and are immutable.

A file is written under a unique temporary name and renamed. Where the final name exists already, an earlier
attempt wrote the same content: it is verified and kept, and different content is refused. Works on every file
system that pyarrow supports.
"""

import io
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import uuid4

from pyarrow import fs

from tidemark.log.errors import FileDamaged, FileMissing, FolderUnusable
from tidemark.log.files.digest_cache import FileStamp

STAGING = "staging"


class StoredFile(NamedTuple):
    """A file as a folder lists it."""

    path: str
    bytes: int


class Digesting(io.RawIOBase):
    """A sink that computes the size and digest of what is written, so that the file need not be read
    again.
    """

    def __init__(self, sink: Any, blamed: Callable[[], AbstractContextManager[None]]) -> None:
        self._sink, self._blamed = sink, blamed
        self._digest, self.size = sha256(), 0

    @property
    def digest(self) -> str:
        """The digest of everything written so far."""
        return self._digest.hexdigest()

    def writable(self) -> bool:
        """True: ``io`` asks for it."""
        return True

    def write(self, data: Any) -> int:
        """Write the bytes to the underlying sink."""
        view = memoryview(data)
        with self._blamed():
            self._sink.write(view)
        self._digest.update(view)
        self.size += view.nbytes
        return view.nbytes


class Staged:
    """A file that is being written. ``settle`` sets its final name; without one it is removed."""

    def __init__(self, sink: Digesting) -> None:
        self.sink, self.final = sink, ""

    def settle(self, path: str) -> None:
        """Set the name that the file gets when the block ends without an error."""
        self.final = path


class Folder:
    """One folder; ``owner`` is the pipeline or writer that error messages name."""

    def __init__(self, owner: str, root: str) -> None:
        self.owner = owner
        self._fs: fs.FileSystem
        self._root: str
        self._given = root
        is_uri = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", root)
        self._fs, self._root = fs.FileSystem.from_uri(root) if is_uri else (fs.LocalFileSystem(), root)

    @contextmanager
    def stage(self, area: str = "", *, replacing: bool = False) -> Iterator[Staged]:
        """A new file with a unique temporary name in ``area``; ``replacing`` allows it to replace an
        existing file.
        """
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
        """A new staging folder with a unique name, for files that another component writes; returns its
        path.
        """
        path = posixpath.join(STAGING, area, uuid4().hex)
        with self._blamed():
            self._fs.create_dir(self.at(path), recursive=True)
        return path

    def create(self, path: str) -> Any:
        """A new file, opened for writing; an existing one is replaced."""
        with self._blamed():
            self._fs.create_dir(posixpath.dirname(self.at(path)), recursive=True)
            return self._fs.open_output_stream(self.at(path))

    def rename(self, path: str, name: str) -> None:
        """Rename a file of a staging area; an existing one of that name is replaced."""
        with self._blamed():
            self._fs.move(self.at(path), self.at(name))

    def adopt(self, path: str, final: str, digest: str) -> None:
        """Rename a file from a staging folder to its final name."""
        self._settle(self.at(path), final, digest, replacing=False)

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
        """The sorted paths of the files directly in an area whose names end with ``suffix``."""
        found = self._fs.get_file_info(fs.FileSelector(self.at(area), allow_not_found=True))
        return sorted(posixpath.join(area, one.base_name) for one in found if one.base_name.endswith(suffix))

    def sizes(self, area: str = "") -> dict[str, int]:
        """The sizes of the files directly in an area, by name."""
        selector = fs.FileSelector(self.at(area), allow_not_found=True)
        with self._blamed():
            found = self._fs.get_file_info(selector)
        return {one.base_name: int(one.size) for one in found if one.type == fs.FileType.File}

    def walk(self, area: str) -> list[StoredFile]:
        """All files of an area and its subfolders, sorted by path."""
        selector = fs.FileSelector(self.at(area), allow_not_found=True, recursive=True)
        found = (one for one in self._fs.get_file_info(selector) if one.type == fs.FileType.File)
        return sorted(StoredFile(posixpath.relpath(one.path, self._root), int(one.size)) for one in found)

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        with self._blamed(), suppress(FileNotFoundError):
            self._fs.delete_file(self.at(path))

    def remove_area(self, area: str) -> None:
        """Remove an area with all its content, if it exists."""
        with suppress(FileNotFoundError):  # another process has removed it
            self._fs.delete_dir(self.at(area))

    def remove_all(self) -> None:
        """Remove the folder itself with all its content, if it exists."""
        with self._blamed(), suppress(FileNotFoundError):  # another process has removed it
            self._fs.delete_dir(self._root)

    def entries(self) -> list[str]:
        """The sorted names of files and folders directly in the folder; empty where it does not exist."""
        found = self._fs.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return sorted(str(one.base_name) for one in found)

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Turn an ``OSError`` into ``FolderUnusable``, which names the folder."""
        try:
            yield
        except OSError as error:
            raise FolderUnusable(self.owner, self._root, error.strerror or str(error)) from None

    def _persist(self, path: str) -> None:
        """Flush to a local disk, so that the file survives a power failure; object stores are durable
        anyway.
        """
        if not isinstance(self._fs, fs.LocalFileSystem):
            return
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def sweep(self, is_over: Callable[[str], bool]) -> None:
        """Remove the staging areas that crashed attempts left; ``is_over`` tells by name that one is not
        in use.
        """
        areas = self._fs.get_file_info(fs.FileSelector(self.at(STAGING), allow_not_found=True))
        for area in areas:
            if area.type == fs.FileType.Directory and is_over(area.base_name):
                self.remove_area(posixpath.join(STAGING, area.base_name))

    def write_once(self, path: str, data: bytes, area: str = "") -> None:
        """Write a small file atomically, unless it exists with the same content."""
        with self.stage(area) as staged:
            staged.sink.write(data)
            staged.settle(path)

    def replace(self, path: str, data: bytes, area: str = "") -> None:
        """Write a small file atomically, replacing an existing one."""
        with self.stage(area, replacing=True) as staged:
            staged.sink.write(data)
            staged.settle(path)

    def verify(self, path: str, digest: str) -> None:
        """Raise ``FileDamaged`` where the file's content does not have this digest."""
        found = self.digest(path)
        if found != digest:
            raise FileDamaged(self.owner, self.at(path), digest, found)

    def digest(self, path: str) -> str:
        """The SHA-256 of a file's content."""
        found = sha256()
        with self.open(path) as source:
            while chunk := source.read(1 << 20):
                found.update(chunk)
        return found.hexdigest()

    def size(self, path: str) -> int:
        """The size of a file in bytes; raises ``FileMissing``."""
        return self.condition(path).size

    def condition(self, path: str) -> FileStamp:
        """The size and modification time of a file; raises ``FileMissing``."""
        found = self._fs.get_file_info(self.at(path))
        if found.type != fs.FileType.File:
            raise FileMissing(self.owner, self.at(path))
        return FileStamp(int(found.size), found.mtime_ns)

    def read(self, path: str) -> bytes:
        """The content of a small file; raises ``FileMissing``."""
        with self.open(path) as source:
            return bytes(source.read())

    def open(self, path: str) -> Any:
        """A file opened for random reads; raises ``FileMissing``."""
        try:
            return self._fs.open_input_file(self.at(path))
        except (FileNotFoundError, NotADirectoryError):
            raise FileMissing(self.owner, self.at(path)) from None

    def exists(self, path: str) -> bool:
        """Whether the file exists."""
        return bool(self._fs.get_file_info(self.at(path)).type == fs.FileType.File)

    def address(self, path: str) -> str:
        """The absolute path for other components: with scheme and host, where the folder has them."""
        return posixpath.join(self._given, path)

    def at(self, path: str) -> str:
        """The absolute path, for the file system and for messages."""
        return posixpath.join(self._root, path)
