"""Finds, reads and checks pipeline files; refuses them with the file, the line and a suggestion.

A broken file never hides the others: it is reported beside the valid pipelines. Rules about several
keys are checked once every key is right by itself; of two files that want the same thing, the first by path
keeps it.

What it refuses to do: guess, repair or drop a key; open a connection; read a secret; let one file's mistake
raise for all. Every DAG file imports it, so nothing heavy is imported here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tidemark.errors import did_you_mean
from tidemark.pipeline import checks
from tidemark.pipeline.files.refusals import explain
from tidemark.pipeline.files.yaml import NotYaml, YamlDocument, read_mapping
from tidemark.pipeline.model import KafkaSource, Pipeline
from tidemark.pipeline.problems import (
    FileProblem,
    Finding,
    PipelineRefused,
    UnknownPipeline,
    declared_as,
    dotted,
    quoted,
)
from tidemark.settings import Settings

__all__ = [
    "FileProblem",
    "LoadedPipelines",
    "PipelineRefused",
    "UnknownPipeline",
    "find_pipeline",
    "load_pipeline",
    "load_pipelines",
]

SUFFIXES = (".yaml", ".yml")
SUITE_SUFFIXES = (".yaml", ".json")


_OWN = "Give each pipeline its own."


def conflicts(pipeline: Pipeline, earlier: Iterable[tuple[Path, Pipeline]]) -> Iterator[Finding]:
    """What this pipeline claims and an earlier one already has; texts begin with the key."""
    for file, other in earlier:
        if pipeline.name == other.name:
            yield Finding(("name",), f"`name` is `{other.name}`, which {file} has already. {_OWN}")
        yield from _same_targets(pipeline, other, file)
        if pipeline.agent and other.agent and pipeline.agent.address == other.agent.address:
            where = f"`agent.listen` is `{pipeline.agent.listen}`, where the agent of {file} listens"
            yield Finding(("agent", "listen"), f"{where}. {_OWN}")
        for place, path in pipeline.locations:
            for other_place, taken in other.locations:
                if checks.overlap(path, taken):
                    shared = f"which shares a folder with {dotted(other_place)} of {file}"
                    yield Finding(place, f"{dotted(place)} is {quoted(path)}, {shared}. {_OWN}")
        yield from _folders_of_renditions(pipeline, other, file)


def _folders_of_renditions(pipeline: Pipeline, other: Pipeline, file: Path) -> Iterator[Finding]:
    for place, path in pipeline.locations:
        for other_place, taken in other.folders_of_renditions:
            if checks.overlap_of_renditions(taken, path):
                inside = f"inside a folder that a rendition of {dotted(other_place)} of {file} would get"
                yield Finding(place, f"{dotted(place)} is {quoted(path)}, {inside}. {_OWN}")
    for place, path in pipeline.folders_of_renditions:
        for other_place, taken in other.locations:
            if checks.overlap_of_renditions(path, taken):
                inside = f"whose renditions would get the folder around {dotted(other_place)} of {file}"
                yield Finding(place, f"{dotted(place)} is {quoted(path)}, {inside}. {_OWN}")


def _same_targets(pipeline: Pipeline, other: Pipeline, file: Path) -> Iterator[Finding]:
    shared = sorted(shared_topics(pipeline.source.kafka, other.source.kafka))
    taken = {claim.identity for _, claim in other.targets}
    for place, claim in pipeline.targets:
        if claim.identity not in taken:
            continue
        subject = f"{dotted(place)} is `{claim.shown}`"
        if not claim.per_topic:
            yield Finding(place, f"{subject}, which {file} writes to already. {_OWN}")
        elif shared:
            what = f"{subject}, where {file} writes {', '.join(shared)} already"
            yield Finding(place, f"{what}. Choose another {claim.key}, or read other topics.")


def shared_topics(one: KafkaSource, other: KafkaSource) -> set[str]:
    """The topics both sources read, or could come to read: ``orders.*`` for what begins with ``orders.``."""
    topics = set(one.topics) & set(other.topics)
    for source, against in ((one, other), (other, one)):
        topics |= {topic for topic in source.topics if topic.startswith(against.topic_prefixes)}
        topics |= {
            f"{prefix}*" for prefix in source.topic_prefixes if prefix.startswith(against.topic_prefixes)
        }
    return topics


@dataclass(frozen=True, slots=True)
class LoadedPipelines:
    """Every pipeline that can be used, in the order of their files, and every file that cannot."""

    pipelines: tuple[Pipeline, ...]
    refused: tuple[PipelineRefused, ...]
    files: tuple[Path, ...] = ()
    """The file of each pipeline."""

    @property
    def names(self) -> frozenset[str]:
        """The names of the pipelines that can be used."""
        return frozenset(pipeline.name for pipeline in self.pipelines)

    @property
    def refused_names(self) -> frozenset[str]:
        """The pipelines that refused files probably declare: the names in them, and the files' own names."""
        declared = {refusal.name for refusal in self.refused if refusal.name is not None}
        return frozenset({*declared, *(refusal.file.stem for refusal in self.refused)})


def load_pipelines(settings: Settings | None = None) -> LoadedPipelines:
    """All pipelines of the installation. Never raises for a bad file or folder: see ``refused``."""
    settings = settings or Settings.read()
    accepted: list[tuple[Path, Pipeline]] = []
    refused: list[PipelineRefused] = []
    found_files: set[Path] = set()
    folders = {folder.resolve(): folder.absolute() for folder in settings.pipeline_folders}
    for folder in folders.values():
        try:
            found_files.update(_files_in(folder, settings))
        except PipelineRefused as refusal:
            refused.append(refusal)
    for file in sorted(found_files):
        try:
            pipeline, document = _read(file, settings)
            if found := list(conflicts(pipeline, accepted)):
                raise PipelineRefused(file, _problems(found, document), pipeline.name)
            accepted.append((file, pipeline))
        except PipelineRefused as refusal:
            refused.append(refusal)
    files, pipelines = [file for file, _ in accepted], [pipeline for _, pipeline in accepted]
    return LoadedPipelines(tuple(pipelines), tuple(refused), tuple(files))


def load_pipeline(path: Path | str, settings: Settings | None = None) -> Pipeline:
    """The pipeline of one file, whatever the others declare. Raises ``PipelineRefused``."""
    return _read(Path(path), settings or Settings.read())[0]


def find_pipeline(name: str, settings: Settings | None = None) -> Pipeline:
    """The pipeline of this name. Raises ``UnknownPipeline``, ``PipelineRefused`` if its file is broken."""
    loaded = load_pipelines(settings)
    if found := declared_as(name, loaded.pipelines, loaded.refused):
        return found
    known = sorted(pipeline.name for pipeline in loaded.pipelines)
    raise UnknownPipeline(name, known, [refusal.file for refusal in loaded.refused])


def expectations_folder(file: Path) -> Path:
    """The folder of the suites that a pipeline file may name: beside the folder of the file."""
    return file.absolute().parent.parent / "expectations"


def _files_in(folder: Path, settings: Settings) -> list[Path]:
    """The pipeline files of a folder; only the installation's own folder may be absent."""
    try:
        return [
            file
            for file in folder.iterdir()
            if file.suffix in SUFFIXES
            and not file.name.startswith(".")  # editors' own files begin with a dot
        ]
    except FileNotFoundError:
        if folder == (settings.root / "include" / "pipelines").absolute():
            return []
        problem = "there is no such folder. Create it, or take it out of TIDEMARK_PIPELINES."
    except NotADirectoryError:
        problem = "this is not a folder. Name the folder of the pipeline files in TIDEMARK_PIPELINES."
    except OSError as error:
        problem = f"the folder cannot be read ({error.strerror}). Give this user the right to read it."
    raise PipelineRefused(folder, [FileProblem(None, problem)])


def _read(file: Path, settings: Settings) -> tuple[Pipeline, YamlDocument]:
    """One file, checked by itself."""
    try:
        document = read_mapping(file)
    except NotYaml as error:
        raise PipelineRefused(file, error.problems) from None
    declared = document.data.get("name")
    pipeline, findings = None, list(_unreachable_suite(document.data.get("expectations"), file))
    try:
        pipeline = Pipeline.model_validate(document.data, context=checks.path_variables(settings))
    except ValidationError as error:
        findings += explain(error)
    if pipeline is None or findings or document.problems:
        problems = (*document.problems, *_problems(findings, document))
        raise PipelineRefused(
            file,
            sorted(problems, key=lambda problem: problem.line or 0),
            declared if isinstance(declared, str) else None,
        )
    return pipeline, document


def _problems(findings: Iterable[Finding], document: YamlDocument) -> list[FileProblem]:
    return [FileProblem(document.line_of(finding.place), finding.text) for finding in findings]


def _unreachable_suite(declared: Any, file: Path) -> Iterator[Finding]:
    """A suite of expectations lies beside the folder of the pipelines; ``default`` comes with Tidemark."""
    try:
        name = checks.name(declared)
    except (TypeError, ValueError):
        return  # not declared, or refused as a name
    folder = expectations_folder(file)
    try:
        suites = {suite.stem for suite in folder.iterdir() if suite.suffix in SUITE_SUFFIXES}
    except OSError:
        suites = set()
    if name not in {"default", *suites}:
        hint = did_you_mean(name, {"default", *suites}, f"Put {name}.yaml or {name}.json into {folder}.")
        yield Finding(("expectations",), f"`expectations` is {quoted(name)}, which names no suite. {hint}")
