"""The operator's environment: the files of a directory, read at the start.

They map resource types in every stack, and can name template files on this machine, which other
environments cannot.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from engine.errors import Finding, Findings, Invalid
from engine.hot.environment.environment import Environment, parse_environment
from engine.hot.environment.merging import merge_into_stored
from engine.hot.environment.registry import ADDRESSES, ResourceRegistry, is_template_file
from engine.hot.nested.template_type import NO_SETTINGS, template_type
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.document import DocumentLimits, read_document
from engine.hot.template.template import Template, parse_template
from engine.service.requests.parsing import OperatorEnvironment
from engine.words import Json

PLACE = "[environment] directory"
REGISTRY = "resource_registry"


def read_operator_environment(directory: str, limits: DocumentLimits) -> OperatorEnvironment:
    """Read all files of a directory, in alphabetical order; later ones override earlier ones. "":
    there is none.

    Raises Invalid with all errors, each with its file.
    """
    if not directory:
        return OperatorEnvironment()
    folder = Path(directory)
    findings = Findings()
    merged: dict[str, Json] = {}
    for path in _paths(folder):
        document = _environment(path, limits, findings)
        merged = merge_into_stored(merged, document)
    findings.raise_if_any()
    environment = parse_environment(merged, operator=None)
    texts, templates = _templates(folder, environment.registry, limits, findings)
    findings.raise_if_any()
    types = dict(_types(environment, templates))
    return OperatorEnvironment(environment.registry, texts, types)


def _paths(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if one.is_file() and one.name[0] != ".")
    except OSError as error:
        reason = f"{folder} cannot be read: {error.strerror}"
        raise Invalid([Finding(PLACE, reason, "Name an existing folder.")]) from error


def _environment(path: Path, limits: DocumentLimits, findings: Findings) -> Mapping[str, Json]:
    """The document; empty if it is invalid, with findings."""
    before = len(findings.all)
    try:
        text = _text(path, limits)
        document = read_document(text, "environment", limits) if text.strip() else {}
        environment = parse_environment(document, operator=None)
    except Invalid as error:
        findings.all += [_in(path, one) for one in error.findings]
        return {}
    for place, remedy in _find_unsupported(environment):
        reason = "It is not supported in the operator's environment."
        findings.all.append(_in(path, Finding(place, reason, remedy)))
    return document if len(findings.all) == before else {}


def _in(path: Path, finding: Finding) -> Finding:
    place = f"{path}: {finding.place}" if finding.place else str(path)
    return replace(finding, place=place)


def _find_unsupported(environment: Environment) -> Iterator[tuple[str, str]]:
    for section, value in environment.document.items():
        if section != REGISTRY and value:
            yield section, f"Use only {REGISTRY}."
    for hook in environment.hook_declarations:
        if hook.place.startswith(REGISTRY):
            yield hook.place, "The operator's own breakpoints are [[hooks.rules]] in the settings."
    for pattern, _ in environment.registry.restrictions:
        yield f"{REGISTRY}.resources.{pattern}.restricted_actions", "Leave it out."


def _text(path: Path, limits: DocumentLimits) -> str:
    """Raises Invalid."""
    try:
        with path.open("rb") as file:
            raw = file.read(limits.max_bytes + 1)
        text = raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Invalid(
            [
                Finding(
                    "",
                    f"It cannot be read: {why}.",
                    "Correct the path, its permissions, or the file.",
                )
            ]
        ) from error
    if len(raw) > limits.max_bytes:
        reason = f"It is larger than {limits.max_bytes} bytes."
        raise Invalid([Finding("", reason, "The limit is [quotas] template_bytes.")])
    return text


def _templates(
    folder: Path, registry: ResourceRegistry, limits: DocumentLimits, findings: Findings
) -> tuple[dict[str, str], dict[str, Template]]:
    """The local templates of the registry by name: their texts, and parsed."""
    texts: dict[str, str] = {}
    templates: dict[str, Template] = {}
    entries = [*registry.mapped.values()]
    for of_one in registry.by_resource.values():
        entries += of_one.values()
    for entry in entries:
        name = entry.target
        if not is_template_file(name) or name.startswith(ADDRESSES):
            continue
        path = folder / _path(name)
        try:
            text = _text(path, limits)
            templates[name] = parse_template(read_document(text, "template", limits))
            texts[name] = text
        except Invalid as error:
            findings.all += [_in(path, one) for one in error.findings]
    return texts, templates


def _types(
    environment: Environment, templates: Mapping[str, Template]
) -> Iterator[tuple[str, TypeSchema]]:
    """The types that are templates, by name."""
    for name, entry in environment.registry.mapped.items():
        if (template := templates.get(entry.target)) is not None:
            kind = template_type(entry.target, template, environment, entry, NO_SETTINGS)
            yield name, replace(kind.schema, name=name)


def _path(name: str) -> str:
    """The path of a ``file:`` URL, or of a name relative to the environment."""
    return unquote(urlsplit(name).path) if name.startswith("file:") else name
