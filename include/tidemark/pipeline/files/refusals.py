"""Pydantic's findings as error texts for the author of a file.

Every text begins with the key it is about. The values of unknown keys are never shown: they may be secrets.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tidemark.errors import did_you_mean
from tidemark.pipeline.files.yaml import PIPELINE
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.parts import Declaration
from tidemark.pipeline.problems import Disagreement, Finding, Place, dotted, quoted
from tidemark.pipeline.transforms import TRANSFORMS
from tidemark.pipeline.writers import WRITERS

_SECRET = re.compile(
    r"passw|pwd|secret|token|credential|sasl|jaas|ssl|keystore|truststore|(api|access|private)_?key|user(_?name)?$",
    re.IGNORECASE,
)
_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_LISTS: Mapping[str, Callable[[str], type[Declaration]]] = {
    "writers": lambda word: WRITERS.find(word).declaration,
    "transforms": lambda word: TRANSFORMS.find(word).declaration,
}
"""The lists whose items are read by different models, with what finds the model for the word that chooses
it."""


def explain(
    error: ValidationError, model: type[Declaration] = Pipeline, page: str = PIPELINE.page
) -> Iterator[Finding]:
    """One finding, with a complete text, for each thing that is wrong with a file that ``model`` reads."""
    for details in error.errors(include_url=False):
        for finding in _findings(details, model, page):
            subject = dotted(finding.place) if finding.place else "the file"
            yield Finding(finding.place, f"{subject} {finding.text}")


def _findings(details: ErrorDetails, model: type[Declaration], page: str) -> Iterator[Finding]:
    place, value, context = _without_kind(details["loc"]), details["input"], details.get("ctx", {})
    match details["type"]:
        case "value_error" if isinstance(context["error"], Disagreement):
            for finding in context["error"].findings:
                yield Finding(place + finding.place, finding.text)
        case "value_error":
            yield Finding(place, str(context["error"]))
        case "missing":
            yield Finding(place, "is missing. Add it: it is required.")
        case "extra_forbidden":
            yield Finding(place, _unknown_key(details["loc"], model))
        case "enum":
            choices = re.findall(r"'([^']*)'", context["expected"])
            yield Finding(
                place,
                f"is {quoted(value)}, which is not one of {', '.join(choices)}.{_meant(value, choices)}",
            )
        case "greater_than_equal":
            yield Finding(place, f"is {quoted(value)}. It must be at least {context['ge']}.")
        case "less_than_equal":
            yield Finding(place, f"is {quoted(value)}. It must be at most {context['le']}.")
        case "too_short" if not value:
            kind = "mapping" if isinstance(value, dict) else "list"
            yield Finding(place, f"is an empty {kind}. Name at least one.")
        case "too_short" | "invalid_key":
            pass  # what is wrong with the items, or the key, is reported by itself
        case kind if kind in _WANTED:
            yield Finding(place, _wrong_type(_WANTED[kind], value, page))
        case _:
            yield Finding(place, f"is not right: {details['msg']}. See {page}.")


def _without_kind(loc: Place) -> Place:
    """Pydantic puts a writer's kind after its position in the list; the file does not."""
    return loc[:2] + loc[3:] if loc[:1] == ("writers",) else loc


def _unknown_key(loc: Place, root: type[Declaration]) -> str:
    model, key = _model_at(loc[:-1], root), str(loc[-1])
    if reason := model.not_here.get(key):
        return f"is not taken here. {reason}"
    if _SECRET.search(key):
        return (
            "is an unknown key. Secrets belong in the connection that `connection` names, never in this file."
        )
    known = [field.alias or name for name, field in model.model_fields.items()]
    listed = f"Known here: {', '.join(known)}."
    return f"is an unknown key. {did_you_mean(key, known, listed)}"


def _model_at(loc: Place, root: type[Declaration]) -> type[Declaration]:
    """The model that reads the mapping at a place."""
    model = root
    for number, step in enumerate(loc):
        if isinstance(step, int) or step in _LISTS:
            continue
        list_, item = loc[max(number - 2, 0)], loc[number - 1]
        if isinstance(item, int) and list_ in _LISTS:
            model = _LISTS[str(list_)](step)
        elif field := model.model_fields.get(step):
            parts = (field.annotation, *get_args(field.annotation))
            model = next((part for part in parts if _is_declaration(part)), model)
    return model


def _is_declaration(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Declaration)


def _meant(value: Any, choices: list[Any]) -> str:
    hint = did_you_mean(value, choices, "") if isinstance(value, str) else ""
    return f" {hint}" if hint else ""


def _wrong_type(wanted: str, value: Any, page: str) -> str:
    match value:
        case None:
            return f"has no value. Give {wanted}, or remove the key."
        case str() if wanted == "a list":
            return "must be a list, not text. Put it in brackets: […]."
        case bool() | int() | float() if wanted == "text":
            return f"must be text, not {quoted(value)}. Put it in quotes."
        case str() if wanted == "a whole number":
            return "must be a whole number, not text. Write digits without quotes."
        case str():
            return f"must be {wanted}, not text. See {page}."
        case _:
            return f"must be {wanted}, not {quoted(value)}. See {page}."
