"""Parses a request: its template, its environment and its files."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from engine.errors import ENVIRONMENT, Finding, Findings, Invalid, LimitReached, as_errors
from engine.hot.environment.context_section import names_region, with_region
from engine.hot.environment.environment import Environment, parse_environment
from engine.hot.environment.merging import (
    HIDDEN_PARAMETERS_SECTION,
    VALUES,
    merge_files,
    merge_into_stored,
)
from engine.hot.environment.registry import ResourceRegistry
from engine.hot.expressions.masking import MASK
from engine.hot.language.dialect import DIALECTS
from engine.hot.nested.nested_templates import NESTING_DEPTH, NestedTemplates
from engine.hot.schema.parameters import ParameterSchema
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.document import DocumentLimits, check_document, check_size, read_document
from engine.hot.template.template import Template, parse_template, read_template
from engine.service.requests.requests import StackRequest
from engine.store.records import TemplateRecord
from engine.words import Json

EMPTY: Final[Mapping[str, str]] = {}
#: Maximum number of environment files of a request, and of their characters. A file counts each
#: time that the request names it.
MAX_ENVIRONMENTS: Final = 1_000
MAX_ENVIRONMENT_CHARACTERS: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class OperatorEnvironment:
    """The operator's environment, for every stack. registry: its resource mappings. files: the
    templates that it names, by name. types: schemas of the types that those templates define."""

    registry: ResourceRegistry = field(default_factory=ResourceRegistry)
    files: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, TypeSchema] = field(default_factory=dict)

    def available_types(self, types: Mapping[str, TypeSchema]) -> dict[str, TypeSchema]:
        """The types that are available to all projects: `types` without the disabled ones, and the
        operator's template types."""
        left = {
            name: schema for name, schema in types.items() if not self.registry.is_disabled(name)
        }
        return left | dict(self.types)


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A parsed request. environment: merged with the stored one. files: with the stored ones, by
    name. source: the template's text; None if it was sent as an object. hidden: as
    `Blueprint.hidden`, of a stack that exists. template_order: as in `Blueprint`."""

    template: Template
    environment: Environment
    files: Mapping[str, str]
    nesting: NestedTemplates
    source: str | None = None
    hidden: frozenset[str] = frozenset()
    template_order: Json = None


def read_request(
    request: StackRequest,
    stored: TemplateRecord | None,
    *,
    limits: DocumentLimits,
    most_resources: int,
    nesting_depth: int = NESTING_DEPTH,
    operator: OperatorEnvironment,
    fetched: Mapping[str, str] = EMPTY,
    kept: TemplateRecord | None = None,
) -> ParsedRequest:
    """Parse a request. stored: the template version to start from, for an update with `existing`.
    fetched: templates by URL. kept: the version whose hidden values replace masked ones.

    Raises Invalid with all errors of the syntax. Errors of the structure are in `wrong` of the
    parsed template and environment, so that the rest can be validated too.
    """
    files = {**(stored.files if stored else {}), **fetched, **request.files}
    findings, read = Findings(), Findings()
    template = None
    try:
        template = read_template(_template(request, stored, limits, read), read)
    except Invalid as error:
        findings.all += error.findings
        read.warn_all(error.warnings)
    warnings = Findings()
    try:
        document = _environment(request, stored, template, files, limits, warnings)
        environment = parse_environment(
            restore_hidden(document, kept) if kept else document, operator.registry
        )
        own = () if request.environment_files else environment.warnings
        found = (*warnings.warnings, *own)
        environment = replace(environment, warnings=_of_environment(found))
    except Invalid as error:
        warnings.warn_all(error.warnings)
        environment = Environment(
            registry=ResourceRegistry(operator=operator.registry),
            findings=_of_environment(error.findings),
            warnings=_of_environment(warnings.warnings),
        )
        findings.all += environment.findings
    if template is None:
        found = (*request.warnings, *read.warnings, *environment.warnings)
        raise Invalid(findings.all, found)
    return ParsedRequest(
        template,
        environment,
        files,
        NestedTemplates(files, operator.files, limits, most_resources, nesting_depth),
        _source(request, stored),
        template_order=_template_order(request, stored),
    )


def _of_environment(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(one.in_file(ENVIRONMENT) for one in findings)


def _source(request: StackRequest, stored: TemplateRecord | None) -> str | None:
    """The template's text; the stored one if the request has no template."""
    if request.template is None:
        return stored.source if stored else None
    return request.template if isinstance(request.template, str) else None


def _template_order(request: StackRequest, stored: TemplateRecord | None) -> Json:
    """The order of the stored template's keys; None if the request has a template."""
    if request.template is not None or stored is None:
        return None
    return stored.order_of("template")


def _template(
    request: StackRequest,
    stored: TemplateRecord | None,
    limits: DocumentLimits,
    warnings: Findings,
) -> Json:
    if request.template is None:
        if stored is not None:
            return stored.template
        findings = Findings()
        remedy = "Send the template as an object or as text."
        findings.add("template", "No template specified", remedy, "Invalid")
        findings.all += as_errors(request.warnings)  # the name of a key can be misspelt
        raise Invalid(findings.all)
    return _document(request.template, "template", limits, warnings)


def _environment(
    request: StackRequest,
    stored: TemplateRecord | None,
    template: Template | None,
    files: Mapping[str, str],
    limits: DocumentLimits,
    warnings: Findings,
) -> dict[str, Json]:
    requested = _requested_environment(request, template, files, limits, warnings)
    merged = requested
    if stored is not None:
        merged = merge_into_stored(stored.ordered_environment(), requested)
    if request.current_region is None or names_region(requested):
        return merged
    return with_region(merged, request.current_region)


def _requested_environment(
    request: StackRequest,
    template: Template | None,
    files: Mapping[str, str],
    limits: DocumentLimits,
    warnings: Findings,
) -> dict[str, Json]:
    """The environment of the request alone. template: None if it could not be parsed."""
    if request.environment_files:
        findings = Findings(warned=warnings.warned)
        for name in request.environment_files:
            if name not in request.files:
                reason = f'"{name}" is not among the files'
                findings.add("environment_files", reason, "Send its text in `files`.")
        _check_environment_count(request)
        read = {
            name: _checked_file(name, request.files, limits, findings)
            for name in dict.fromkeys(request.environment_files)
            if name in request.files
        }
        findings.raise_if_any()
        documents = [(name, read[name]) for name in request.environment_files]
        if template is None:
            return {}
        schemas = _schemas(template, files, limits) if len(documents) > 1 else {}
        merged = merge_files(documents, schemas, findings)
        findings.raise_if_any()
        return merged
    if not request.environment:
        return {}
    document = _document(request.environment, "environment", limits, warnings)
    parse_environment(document)
    return merge_into_stored({}, document)


def _check_environment_count(request: StackRequest) -> None:
    """Raise LimitReached for too many or too large environment files. A file that the request names
    several times is merged each time."""
    names = request.environment_files
    size = sum(len(request.files.get(name, "")) for name in names)
    if len(names) > MAX_ENVIRONMENTS or size > MAX_ENVIRONMENT_CHARACTERS:
        raise LimitReached(
            f"the request names {len(names)} files with {size} characters",
            place="environment_files",
            remedy=f"The limits are {MAX_ENVIRONMENTS} files and {MAX_ENVIRONMENT_CHARACTERS}"
            " characters; a file counts each time that the request names it.",
            code="RequestLimitExceeded",
        )


def restore_hidden(document: Mapping[str, Json], stored: TemplateRecord) -> dict[str, Json]:
    """An environment with its masked values replaced by the hidden values of a stored version. What
    the stored environment hides stays hidden: the API does not show that section."""
    found = dict(document)
    for section in VALUES:
        if section in found:
            found[section] = unmask(section, found[section], stored)
    earlier = stored.environment.get(HIDDEN_PARAMETERS_SECTION, [])
    if earlier:
        found[HIDDEN_PARAMETERS_SECTION] = list(
            dict.fromkeys((*found.get(HIDDEN_PARAMETERS_SECTION, []), *earlier))
        )
    return found


def unmask(section: str, values: Mapping[str, Json], stored: TemplateRecord) -> dict[str, Json]:
    """Values of an environment section, with masked hidden values replaced by the stored ones."""
    before = stored.environment.get(section) or {}
    if section == "parameters":
        before = {**before, **stored.parameters}
    return {
        name: before[name]
        if value == MASK and name in stored.hidden_parameters and name in before
        else value
        for name, value in values.items()
    }


def _checked_file(
    name: str, files: Mapping[str, str], limits: DocumentLimits, findings: Findings
) -> dict[str, Json]:
    """A parsed environment file. Adds its errors to the findings, with the file's name; returns {}
    if there are any."""
    read = Findings()
    try:
        document = _file(files[name], name, limits, read)
        read.warn_all(parse_environment(document).warnings)
    except Invalid as error:
        findings.all += _in_file(name, error.findings)
        findings.warn_all(_in_file(name, (*read.warnings, *error.warnings)))
        return {}
    findings.warn_all(_in_file(name, read.warnings))
    return document


def _in_file(name: str, findings: Iterable[Finding]) -> list[Finding]:
    """Findings of an environment file, with its name."""
    return [
        replace(
            one,
            place=f"{name}: {one.place}" if one.place else one.place,
            file=name,
            inner_place=one.place,
        )
        for one in findings
    ]


def _file(text: str, name: str, limits: DocumentLimits, warnings: Findings) -> dict[str, Json]:
    return read_document(text, f"environment {name}", limits, warnings) if text.strip() else {}


def _schemas(
    template: Template, files: Mapping[str, str], limits: DocumentLimits
) -> dict[str, ParameterSchema]:
    """The parameters that environments can set: of the template and of template files."""
    found: dict[str, ParameterSchema] = {}
    for one in _templates(files, limits):
        found |= one.parameters
    return found | dict(template.parameters)


def _templates(files: Mapping[str, str], limits: DocumentLimits) -> Iterator[Template]:
    for name, text in files.items():
        if any(key in text for key in DIALECTS):
            try:
                yield parse_template(read_document(text, name, limits, Findings()))
            except Invalid:
                continue  # not a template; if the stack uses it as one, that reports the error


def without_hidden(
    files: Mapping[str, str],
    environment_files: Sequence[str],
    hidden: Collection[str],
    limits: DocumentLimits,
) -> dict[str, str]:
    """The files as they are stored and shown: hidden values in environment files are masked. The
    environments have been merged, so that their values are not needed."""
    kept = dict(files)
    for name in dict.fromkeys(environment_files):
        document = _file(files[name], name, limits, Findings())
        for section in VALUES:
            values = document.get(section)
            if isinstance(values, dict) and (secret := values.keys() & hidden):
                document = {**document, section: {**values, **dict.fromkeys(secret, MASK)}}
                kept[name] = orjson.dumps(document).decode()
    return kept


def _document(
    value: Json, what: str, limits: DocumentLimits, warnings: Findings
) -> dict[str, Json]:
    """Parse a text, or check an object, whose size is that of its compact JSON. what: its name for
    errors. Raises Invalid."""
    if isinstance(value, str):
        return read_document(value, what, limits, warnings)
    document = check_document(value, what, limits)
    check_size(orjson.dumps(document), what, limits)
    return document
