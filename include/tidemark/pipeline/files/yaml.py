"""A declared file's YAML as plain values, with the line of every key: bounded, and parsed once per change.

Duplicate keys and keys that are not text are reported, not resolved in silence. A scalar that only looks like
a date or a number stays text. No object but plain values is ever built, and anchors are never expanded.

A file that is too large to be a declaration is refused by its size alone, and one with too many values as
soon as they are counted: no file keeps a process busy that reads all of them. Within a process a content is
parsed once; further callers get the same document and do not change it.

What it refuses to do: read anything but a regular file (a pipe would never end); trust a file's times.
Contents are compared, because reading a megabyte takes less than a millisecond. There is no cache on disk: an
ordinary file is parsed in three milliseconds, and every DAG file is loaded by a process of its own that takes
a hundred times as long to import Airflow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from tidemark.pipeline.problems import FileProblem, Place, quoted

MOST_BYTES = 1_000_000
"""A generous bound: a pipeline with a hundred writers takes a few kilobytes."""
CACHED_FILES = 256
MOST_VALUES = 20_000
"""Keys, values, lists and mappings of a file: less than a second of parsing."""

_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file declares, a file that shows how, and the page that says what its keys mean."""

    what: str
    example: str
    page: str


PIPELINE = FileKind("pipeline", "include/pipelines/orders.yaml", "docs/pipelines.md")


class NotYaml(ValueError):
    """Text from which no value can be read at all."""

    def __init__(self, *problems: FileProblem) -> None:
        super().__init__("; ".join(problem.text for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The values of a file, where they stand, and what is wrong with the file as YAML."""

    data: Any
    problems: tuple[FileProblem, ...]
    root: Node

    def line_of(self, place: Place) -> int:
        """The line of the key or list item at a place; if the file does not have it, of what is around it."""
        node, line = self.root, _line(self.root)
        for step in place:
            found = _step(node, step)
            if found is None:
                break
            line, node = found
        return line


def read_mapping(file: Path, kind: FileKind = PIPELINE) -> YamlDocument:
    """As ``read_declared`` for a file that must be a mapping. Raises only ``NotYaml``."""
    try:
        document = read_declared(file, kind)
    except OSError as error:
        problem = f"the file cannot be read ({error.strerror}). Check that it exists and may be read."
        raise NotYaml(FileProblem(1, problem)) from None
    if not isinstance(document.data, dict):
        problem = "the file is not a mapping. Begin it with `name: …`."
        raise NotYaml(FileProblem(document.line_of(()), problem))
    return document


def read_declared(file: Path, kind: FileKind = PIPELINE) -> YamlDocument:
    """The document of a file. Raises ``NotYaml`` for its content, ``OSError`` where it cannot be read."""
    found = file.stat()
    if not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)):  # a folder says so itself
        raise NotYaml(FileProblem(None, f"this is not a regular file. Put the {kind.what} into one."))
    if found.st_size > MOST_BYTES:
        raise _too_large(found.st_size, kind)
    with file.open("rb") as opened:
        content = opened.read(MOST_BYTES + 1)  # it may have grown since
    if len(content) > MOST_BYTES:
        raise _too_large(len(content), kind)
    parsed = _parsed(content, kind)
    if isinstance(parsed, YamlDocument):
        return parsed
    raise NotYaml(*parsed)


def _too_large(size: int, kind: FileKind) -> NotYaml:
    return NotYaml(
        FileProblem(
            None,
            f"the file has {size:,} bytes, and a {kind.what} may have {MOST_BYTES:,}. It was not read. "
            "Take out what does not belong there, or move the file away.",
        )
    )


@lru_cache(maxsize=CACHED_FILES)
def _parsed(content: bytes, kind: FileKind) -> YamlDocument | tuple[FileProblem, ...]:
    """The document, or what is wrong with it: a broken file is not parsed again and again either."""
    try:
        return read_document(content, kind)
    except NotYaml as error:
        return error.problems


def read_document(content: bytes, kind: FileKind = PIPELINE) -> YamlDocument:
    """The one YAML document in a file's bytes."""
    text = _decoded(content)
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _CountingComposer
    yaml.Constructor = _PlainConstructor
    yaml.allow_duplicate_keys = True
    problems: tuple[FileProblem, ...] = ()
    try:
        root = yaml.compose(text)
        if root is None:
            raise NotYaml(
                FileProblem(1, f"the file is empty. Declare a {kind.what}, as {kind.example} does.")
            )
        problems = tuple(_key_problems(root))
        data = yaml.constructor.construct_document(root)
    except RecursionError:
        raise NotYaml(
            FileProblem(1, "the file is nested too deeply to be read. Remove the nesting.")
        ) from None
    except _TooManyValues as error:
        text = f"the file has more than {MOST_VALUES:,} keys and values. Declare one {kind.what} in a file."
        raise NotYaml(FileProblem(error.line, text)) from None
    except YAMLError as error:
        raise NotYaml(*problems or [_explained(error, text, kind)]) from None
    return YamlDocument(data, problems, root)


class _TooManyValues(Exception):
    """The file has more in it than a declaration can have."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _CountingComposer(Composer):
    """Stops at a number of nodes, before it has cost more than a second."""

    composed = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.composed += 1
        if self.composed > MOST_VALUES:
            raise _TooManyValues(int(self.parser.peek_event().start_mark.line) + 1)
        return super().compose_node(parent, index)


class _PlainConstructor(SafeConstructor):
    """Dates stay text, so does a lone ``=``, and what the resolver takes for a number and Python does not."""

    def plain_int(self, node: Any) -> Any:
        try:
            return self.construct_yaml_int(node)
        except ValueError:
            return node.value

    def plain_text(self, node: Any) -> Any:
        return self.construct_scalar(node)


_PlainConstructor.add_constructor("tag:yaml.org,2002:int", _PlainConstructor.plain_int)
_PlainConstructor.add_constructor("tag:yaml.org,2002:timestamp", _PlainConstructor.plain_text)
_PlainConstructor.add_constructor("tag:yaml.org,2002:value", _PlainConstructor.plain_text)


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotYaml(FileProblem(line, "the file is not UTF-8 text. Save it as UTF-8.")) from None


def _explained(error: YAMLError, text: str, kind: FileKind) -> FileProblem:
    """The parser's complaint as one sentence, without the excerpt of the file it carries."""
    if isinstance(error, ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return FileProblem(line, "the file has a control character in it. Remove it.")
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return FileProblem(1, f"the file is not YAML. Write it as {kind.example} does.")
    line = error.problem_mark.line + 1
    what = error.problem or error.context or "it cannot be read"
    if "found character '\\t'" in what:
        return FileProblem(line, "a tab stands where YAML wants spaces. Indent with spaces.")
    if "found another document" in what:
        return FileProblem(
            line, f"a second YAML document begins here. Put each {kind.what} into a file of its own."
        )
    if "cannot start any token" in what:
        return FileProblem(line, f"this is not YAML: {what}. Put the value in quotes.")
    if isinstance(error, ConstructorError):
        return FileProblem(
            line, f"this is not a plain value: {what}. Write text, a number, a list or a mapping."
        )
    if error.context_mark is not None and ("stream end" in what or "end of stream" in what):
        last = text.rstrip().count("\n") + 1
        begun = min(error.context_mark.line + 1, last)
        return FileProblem(begun, "what begins here has no end. Close the quote or the bracket.")
    return FileProblem(line, f"this is not YAML: {what}. Check quotes, brackets and indentation.")


def _key_problems(root: Node) -> Iterator[FileProblem]:
    """Keys that stand twice in one mapping, and keys that are not text. Looks at every node once."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, MappingNode):
            waiting.extend(value for _, value in node.value)
            yield from _key_problems_of(node)


def _key_problems_of(mapping: MappingNode) -> Iterator[FileProblem]:
    first: dict[str, int] = {}
    for key, _ in mapping.value:
        line = _line(key)
        if not isinstance(key, ScalarNode):
            yield FileProblem(line, "a list or mapping stands where a key should. Write a word.")
        elif key.tag not in (_TEXT, _MERGE):
            yield FileProblem(line, f"the key {quoted(key.value)} is not text. Put it in quotes.")
        elif key.value in first:
            text = f"the key {quoted(key.value)} is here for the second time"
            yield FileProblem(line, f"{text}. It is on line {first[key.value]} already.")
        else:
            first[key.value] = line


def _step(node: Node, step: str | int) -> tuple[int, Node] | None:
    """The line and the node one step further in."""
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        return _line(node.value[step]), node.value[step]
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == step:
                return _line(key), value
    return None


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
