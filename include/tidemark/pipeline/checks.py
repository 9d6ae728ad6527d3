"""Checks of single text values in a pipeline file: names, topics, schedules, expressions, locations.

Each check returns the text, or raises ``ValueError`` with the rest of a sentence that begins with the key's
name. No check opens a connection, so none can tell whether a topic, a keyspace or a connection exists.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from re import _parser  # type: ignore[attr-defined]  # the only way to get the syntax tree
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from croniter import CroniterBadDateError, CroniterError, croniter  # type: ignore[import-untyped]
from pydantic import ValidationInfo

from tidemark.errors import did_you_mean
from tidemark.pipeline.problems import quoted
from tidemark.settings import TRANSFORMS, Settings

PRESETS = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@quarterly", "@yearly", "@annually")

# Cassandra's documentation, CQL, Appendix A: the keywords that are reserved.
CQL_RESERVED = """
    add allow alter and apply asc authorize batch begin by columnfamily create default delete desc
    describe drop entries execute from full grant if in index infinity insert into is keyspace limit
    materialized mbean mbeans modify nan norecursive not null of on or order primary rename replace
    revoke schema select set table to token truncate unlogged unset update use using view where with
"""

_DERIVED_CQL = re.compile(r".*_r[0-9]+")
_DERIVED_NAME = re.compile(r".*\.r[0-9]+")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_TOPIC = re.compile(r"[A-Za-z0-9._-]+")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\})?")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)(?://([^/]*))?(/.*)?")
_RANDOM_FIELD = re.compile(r"(?<![A-Za-z])R(?![A-Za-z])", re.IGNORECASE)
_REFUSED_IN_EXPRESSIONS = {
    "ASSERT": "looks around",
    "ASSERT_NOT": "looks around",
    "GROUPREF": "refers back to a group",
    "GROUPREF_EXISTS": "depends on whether a group matched",
    "POSSESSIVE_REPEAT": "has a possessive repeat",
    "ATOMIC_GROUP": "has an atomic group",
}


def name(text: str) -> str:
    """The name of a pipeline, a writer or a suite: it becomes part of DAG ids, task ids and file names."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"is {quoted(text)}. Use letters, digits, - and _ only.")
    if len(text) > 200:
        raise ValueError("is longer than 200 characters. Shorten it.")
    return text


def topic(text: str) -> str:
    """The name of a Kafka topic, or a prefix of names."""
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise ValueError(
            f"is {quoted(text)}, which no topic is called. Use letters, digits, ., - and _ only."
        )
    if len(text) > 249:
        raise ValueError("is longer than 249 characters, Kafka's limit. Shorten it.")
    return text


def connection(text: str) -> str:
    """The id of an Airflow connection. The error does not show it: it may be a URI with a password."""
    if not _TOPIC.fullmatch(text):
        raise ValueError(
            "is not the id of a connection. Declare the connection in Airflow and give its id here."
        )
    return text


def identifier(text: str) -> str:
    """A CQL name that needs no quotes and keeps its case."""
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError(
            f"is {quoted(text)}, which CQL cannot name. Use letters, digits and _, a letter first."
        )
    if text != text.lower():
        raise ValueError(f"is {quoted(text)}, which Cassandra would fold. Did you mean `{text.lower()}`?")
    if text in CQL_RESERVED.split():
        raise ValueError(f"is `{text}`, a reserved word of CQL. Choose another name.")
    if len(text) > 48:
        raise ValueError("is longer than 48 characters, Cassandra's limit. Shorten it.")
    return text


def not_derived(text: str) -> str:
    """A CQL name that is not the one of a rendition, such as ``orders_r2``."""
    if _DERIVED_CQL.fullmatch(text):
        raise ValueError(
            f"is `{text}`. Names that end in `_r` and a number belong to the renditions of writers. Choose "
            "another name."
        )
    return text


def own_topic(text: str) -> str:
    """A topic that a writer sends to: its name is not the one of a rendition, such as ``orders.r2``."""
    if _DERIVED_NAME.fullmatch(text):
        raise ValueError(
            f"is `{text}`. Topics that end in `.r` and a number belong to the renditions of writers. Choose "
            "another name."
        )
    return text


def own_location(text: str) -> str:
    """A folder of a writer: its name is not the one of a rendition, such as ``orders.r2``."""
    if _DERIVED_NAME.fullmatch(text.rstrip("/")):
        raise ValueError(
            f"is {quoted(text)}. Folders that end in `.r` and a number belong to the renditions of writers. "
            "Choose another name."
        )
    return text


def keyspace(text: str) -> str:
    """A keyspace for data: neither one of Cassandra's own nor ``tidemark``, which is the control plane's."""
    if identifier(text) == "tidemark":
        raise ValueError("is `tidemark`, which holds positions and gates. Choose a keyspace for data alone.")
    if text == "system" or text.startswith("system_"):
        raise ValueError(f"is `{text}`, which belongs to Cassandra. Choose another keyspace.")
    return text


def cron(text: str) -> str:
    """A cron expression of five fields, or one of ``PRESETS``."""
    if text.startswith("@"):
        if text not in PRESETS:
            hint = did_you_mean(text, PRESETS, f"Known: {', '.join(PRESETS)}.")
            raise ValueError(f"is {quoted(text)}, which is not known. {hint}")
        return text
    advice = 'Write five fields, such as "*/5 * * * *", or a preset, such as "@daily".'
    if not text.isascii() or len(text.split()) != 5 or _RANDOM_FIELD.search(text):
        raise ValueError(f"is {quoted(text)}, which is not a schedule. {advice}")
    try:
        croniter(text, datetime(2024, 1, 1)).get_next()
    except CroniterBadDateError:
        raise ValueError(f"is {quoted(text)}, a date that never comes. {advice}") from None
    except CroniterError:
        raise ValueError(f"is {quoted(text)}, which is not a schedule. {advice}") from None
    return text


def timezone(text: str) -> str:
    """A time zone of the tz database."""
    try:
        ZoneInfo(text)
    except (OSError, ValueError, LookupError):
        hint = did_you_mean(text, available_timezones(), "Use a name such as Europe/Zurich, or UTC.")
        raise ValueError(f"is {quoted(text)}, which is not a known time zone. {hint}") from None
    return text


def expression(text: str) -> str:
    """A regular expression without constructs that engines implement differently or slowly, such as
    look-around."""
    advice = "Use plain alternatives, classes and anchors."
    try:
        re.compile(text)
        operations = set(_operations(_parser.parse(text)))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is {quoted(text)}, which is not a regular expression: {error}. {advice}") from None
    for operation, what in _REFUSED_IN_EXPRESSIONS.items():
        if operation in operations:
            raise ValueError(f"is {quoted(text)}, which {what}: that is refused. {advice}")
    return text


def _operations(tree: Any) -> Iterator[str]:
    """The operations anywhere in a parsed expression."""
    if isinstance(tree, _parser.SubPattern):
        for operation, argument in tree.data:
            yield str(operation)
            yield from _operations(argument)
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from _operations(part)


def path_variables(settings: Settings) -> dict[str, str]:
    """The variables of ``${…}``: the environment, with TIDEMARK_HOME even where it is not set.

    ``TIDEMARK_TRANSFORMS`` has the packages with functions that a file may name.
    """
    packages = ":".join(settings.transform_packages)
    return {**os.environ, "TIDEMARK_HOME": str(settings.home), TRANSFORMS: packages}


def location(text: str, info: ValidationInfo) -> str:
    """A folder on any filesystem that Spark can write to; ``${…}`` is replaced by the context's variables."""
    variables = info.context if info.context is not None else path_variables(Settings.read())
    place = _VARIABLE.sub(lambda match: _value_of(match, variables), text)
    if not place.isprintable():
        raise ValueError("has a character in it that cannot be seen. Remove it.")
    uri = _URI.fullmatch(place)
    if uri and ":" in (uri[2] or "").partition("@")[0] and "@" in uri[2]:
        raise ValueError("has a password in it. Secrets belong in the connection, never in this file.")
    if not uri and not place.startswith("/"):
        raise ValueError(
            f"is {quoted(text)}, which depends on where it is read. "
            "Write ${TIDEMARK_HOME}/…, an absolute path or a URI."
        )
    return place


def listed_function(path: str, info: ValidationInfo) -> str:
    """A dotted path into one of the packages that ``TIDEMARK_TRANSFORMS`` names. Imports nothing.

    A pipeline file is data: it cannot make a process import and call code that the installation did not list.
    """
    variables = info.context if info.context is not None else path_variables(Settings.read())
    listed = [package for package in variables.get(TRANSFORMS, "").split(":") if package]
    if any(path.startswith(f"{package}.") for package in listed):
        return path
    now = f"it names {', '.join(listed)}" if listed else "it names none"
    package = path.partition(".")[0]
    raise ValueError(
        f"is {quoted(path)}, but functions are called only from packages that {TRANSFORMS} names, and {now}. "
        f"It was not imported. Set {TRANSFORMS}={':'.join([*listed, package])} wherever pipelines are read, "
        "or name a function of a listed package."
    )


def _value_of(match: re.Match[str], variables: Mapping[str, str]) -> str:
    variable = match[1]
    if variable is None:
        raise ValueError("has a $ that begins no variable. Write ${NAME}, such as ${TIDEMARK_HOME}.")
    if not variables.get(variable):
        hint = did_you_mean(variable, variables, "Set it, or write the path itself.")
        raise ValueError(f"names ${{{variable}}}, which is not set in the environment. {hint}")
    return variables[variable]


def overlap(one: str, other: str) -> bool:
    """Whether two locations are the same folder or one contains the other; compares the texts only."""
    shorter, longer = sorted((_parts(one), _parts(other)), key=len)
    return longer[: len(shorter)] == shorter


def overlap_of_renditions(written: str, other: str) -> bool:
    """Whether ``other`` lies inside a folder that a rendition of the writer with ``written`` would get."""
    folder, found = _parts(written), _parts(other)
    if found[: len(folder) - 1] != folder[:-1] or len(found) < len(folder) or len(folder) <= ROOTS:
        return False
    return re.fullmatch(re.escape(folder[-1]) + r"\.r[0-9]+", found[len(folder) - 1]) is not None


def topics_of_renditions(written: str, topics: Iterable[str], prefixes: Iterable[str]) -> Iterator[str]:
    """Those topics and prefixes that match what renditions of the writer to ``written`` would get."""
    derived = re.compile(re.escape(written) + r"\.r[0-9]+")
    yield from (topic for topic in topics if derived.fullmatch(topic))
    begin = f"{written}.r"
    yield from (prefix for prefix in prefixes if begin.startswith(prefix) or derived.fullmatch(prefix))


ROOTS = 2
"""The parts of a location before its folders: scheme and authority."""


def _parts(place: str) -> list[str]:
    """Scheme, authority and folders; a plain path is the same as its ``file:`` URI."""
    uri = _URI.fullmatch(place)
    scheme, authority, path = uri.groups() if uri else ("file", "", place)
    folders = posixpath.normpath(path or "/").split("/")
    return [scheme.lower(), authority or "", *filter(None, folders)]
