"""The transform ``function``, which calls a Python function of a package that the installation lists."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from importlib import import_module
from math import isfinite
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationInfo

from tidemark.delivery.transforms.document import Change, Document, Operation, Unfit
from tidemark.errors import did_you_mean
from tidemark.pipeline import checks
from tidemark.pipeline.problems import quoted, shortened
from tidemark.pipeline.transforms import Transform, TransformKind


def function_at(path: str) -> Callable[[Any], Any]:
    """The callable that a dotted path names; imports its module.

    Raises ``ValueError`` with the rest of a sentence that begins with the key's name.
    """
    module_name, name = _dotted(path)
    try:
        module = import_module(module_name)
        found = getattr(module, name, None)
    except (Exception, SystemExit) as error:  # a broken module must not hide the other pipelines
        raise ValueError(
            f"is {quoted(path)}, which cannot be imported ({type(error).__name__}: {shortened(error)}). "
            "Correct the path or the module; it must be importable wherever pipelines are read and delivered."
        ) from error
    if found is None:
        functions = [each for each, value in vars(module).items() if callable(value)]
        hint = did_you_mean(name, functions, "Name a function of that module.")
        raise ValueError(f"is {quoted(path)}, but the module has no `{name}`. {hint}")
    if not callable(found):
        raise ValueError(
            f"is {quoted(path)}, which cannot be called: it is of type {type(found).__name__}. "
            "Name a function."
        )
    return found  # type: ignore[no-any-return]  # its signature is checked when it is called


def _dotted(path: str) -> tuple[str, str]:
    """The path as module and name; raises ``ValueError`` for anything else."""
    module_name, _, name = path.rpartition(".")
    if not module_name or not all(part.isidentifier() for part in path.split(".")):
        raise ValueError(f"is {quoted(path)}, which is not a dotted path. Write package.module.name.")
    return module_name, name


def _a_function(path: str, info: ValidationInfo) -> str:
    _dotted(path)
    checks.listed_function(path, info)  # before it is imported: importing runs its code
    function_at(path)
    return path


class Function(Transform):
    """Calls a Python function."""

    called = "function"
    path: Annotated[str, AfterValidator(_a_function)]

    @property
    def subject(self) -> str:
        """See ``Transform``."""
        return f"`{self.path}`"


def modules_called(transforms: Iterable[object]) -> Iterator[str]:
    """The modules of the functions that transforms call."""
    return (one.path.rpartition(".")[0] for one in transforms if isinstance(one, Function))


def _calling(declared: Function) -> Change:
    path = declared.path
    try:
        function = function_at(path)
    except ValueError as error:  # installed where the file was loaded, but not in this process
        raise Unfit(f"`path` {error}") from error

    def call(document: Document) -> Document | None:
        # A copy, because users' functions may change their argument.
        result = function(replace(document, data=_copied(document.data)))
        if result is None:
            return None
        if not isinstance(result, Document):
            kind = type(result).__name__
            raise Unfit(f"`{path}` returned something of type {kind}. Return a Document, or None to drop.")
        if problem := _wrong_field(result):
            raise Unfit(f"`{path}` returned a document whose {problem}.")
        return result

    return call


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _wrong_field(document: Document) -> str | None:
    """The first wrong type in a document that a user's function returned; None where all are right."""
    if not isinstance(document.op, Operation):
        return f"`op` is {quoted(document.op)}, which is not an Operation"
    if type(document.ts) is not int or not -(2**63) <= document.ts < 2**63:
        return f"`ts` is {quoted(document.ts)}, which is not a whole number of 64 bits"
    if not isinstance(document.namespace, str):
        return f"`namespace` is {quoted(document.namespace)}, which is not text"
    if not isinstance(document.data, dict):
        return f"`data` is of type {type(document.data).__name__}, which is not a dict"
    if foreign := _not_json(document.data):
        return f"`data` holds {foreign}, which JSON does not have"
    return None


def _not_json(value: Any) -> str | None:
    """The first value inside ``value`` that JSON cannot represent; None where there is none."""
    if value is None or isinstance(value, str | int):
        return None
    if isinstance(value, float | Decimal):
        return None if isfinite(value) else f"the number {value}"
    if isinstance(value, list):
        return next(filter(None, map(_not_json, value)), None)
    if isinstance(value, dict):
        if odd := [key for key in value if not isinstance(key, str)]:
            return f"the key {quoted(odd[0])}"
        return next(filter(None, map(_not_json, value.values())), None)
    return f"something of type {type(value).__name__}"


FUNCTION = TransformKind(Function, _calling)
