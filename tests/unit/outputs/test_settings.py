"""Settings of a rendition: what counts as a change of the output, and what does not."""

import pytest
from tests.support.output_samples import given_output

from tidemark.module_digests import imported_digests
from tidemark.outputs.model.rendition import settings_digest
from tidemark.outputs.settings import (
    CodeDiffers,
    SettingChange,
    changed_settings,
    code_digests,
    refuse_other_code,
    settings_of,
)
from tidemark.pipeline.journal import JournalDeclaration
from tidemark.writers.files.kind import FilesDeclaration

pytestmark = pytest.mark.unit

SHAPE = {"kind": "files", "path": "/a", "format": "parquet", "source_format": "json"}


def given_files(**keys: object) -> FilesDeclaration:
    return FilesDeclaration.model_validate({"name": "archive", "kind": "files", "path": "/a", **keys})


def test_settings_are_the_declaration_and_the_shape():
    declared = given_files(namespaces="^x", transforms=[{"omit": {"fields": ["card"]}}])
    assert settings_of(declared, SHAPE) == {
        "writer": {
            "name": "archive",
            "kind": "files",
            "path": "/a",
            "namespaces": "^x",
            "transforms": [{"omit": {"fields": ["card"]}}],
        },
        "shape": SHAPE,
    }


def test_a_key_with_its_default_is_the_same_as_none():
    assert settings_of(given_files(reconcile=2, start="earliest"), SHAPE) == settings_of(given_files(), SHAPE)


def test_a_declaration_can_be_read_from_its_settings():
    declared = given_files(format="jsonl", transforms=[{"omit": {"fields": ["card"]}}])
    assert FilesDeclaration.model_validate(settings_of(declared, SHAPE)["writer"]) == declared
    journal = JournalDeclaration.model_validate({"name": "cassandra", "kind": "journal", "keyspace": "j"})
    assert JournalDeclaration.model_validate(settings_of(journal, {})["writer"]) == journal


def test_keys_that_say_only_how_it_is_kept_can_be_left_out():
    kept = settings_of(given_files(reconcile=9), SHAPE, leaving_out={"reconcile"})
    assert kept == settings_of(given_files(reconcile=3), SHAPE, leaving_out={"reconcile"})


def test_tuples_and_lists_are_the_same_setting():
    one, other = settings_of(given_files(), {"a": (1, 2)}), settings_of(given_files(), {"a": [1, 2]})
    assert (one, settings_digest(one, {})) == (other, settings_digest(other, {}))


def test_a_shape_that_is_no_json_is_refused():
    for wrong in (float("nan"), {1, 2}):
        with pytest.raises((ValueError, TypeError)):
            settings_of(given_files(), {"a": wrong})


def test_what_differs_is_said_with_its_place():
    before = settings_of(given_files(format="jsonl"), SHAPE | {"format": "jsonl"})
    now = settings_of(given_files(namespaces="^x"), SHAPE)
    assert changed_settings(before, now) == [
        SettingChange("shape.format", "jsonl", "parquet"),
        SettingChange("writer.format", "jsonl", None),
        SettingChange("writer.namespaces", None, "^x"),
    ]
    assert str(changed_settings(before, now)[0]) == "shape.format was 'jsonl' and is now 'parquet'"
    assert changed_settings(now, now) == []


def test_the_code_of_several_functions_is_that_of_all_their_modules():
    found = code_digests(["json.decoder", "json.tool", "json.decoder"])
    assert found == imported_digests("json.decoder") | imported_digests("json.tool")
    assert {"json", "json.decoder", "json.scanner", "json.tool"} <= set(found)
    assert code_digests([]) == {}


def test_other_code_stops_a_rendition_and_the_same_does_not():
    (rendition,) = given_output().renditions
    refuse_other_code("orders", "accounts", rendition, {})
    with pytest.raises(CodeDiffers) as refusal:
        refuse_other_code("orders", "accounts", rendition, {"shop.taxes": "7f3a", "shop": "09fe"})
    assert (refusal.value.number, refusal.value.which) == (1, "shop, shop.taxes")
