"""What a request says, read: its template, its environment and the files that it sends along."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from engine.errors import Findings, Invalid, LimitReached
from engine.hot.environment import Environment, parse_environment
from engine.hot.merging import VALUES, add_to, merge_files
from engine.hot.nesting import Nesting
from engine.hot.parameters import ParameterSchema
from engine.hot.registry import Registry
from engine.hot.resolve import MASK
from engine.hot.schema import TypeSchema
from engine.hot.source import Limits, check_document, read_document
from engine.hot.spelling import SPELLINGS
from engine.hot.template import Template, parse_template, read_template
from engine.service.requests import StackRequest
from engine.store.records import TemplateRecord
from engine.words import Json

#: The section whose names are hidden although no template says so.
HIDES = "encrypted_param_names"
EMPTY: Final[Mapping[str, str]] = {}
#: Environments of one request, and their characters; each counts as often as it is named.
MOST_ENVIRONMENTS: Final = 1_000
MOST_OF_ENVIRONMENTS: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class OperatorEnvironment:
    """What the operator maps for every stack. files: templates that it names, by name. types: those
    that its templates are for everyone."""

    registry: Registry = field(default_factory=Registry)
    files: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, TypeSchema] = field(default_factory=dict)

    def known(self, types: Mapping[str, TypeSchema]) -> dict[str, TypeSchema]:
        """Types that anyone can use: of those that there are, those left; and the templates."""
        left = {
            name: schema for name, schema in types.items() if not self.registry.is_disabled(name)
        }
        return left | dict(self.types)


@dataclass(frozen=True, slots=True)
class Written:
    """environment: merged, with what was stored. files: those stored as well, by name. source: the
    template's text; None: it was sent as a document."""

    template: Template
    environment: Environment
    files: Mapping[str, str]
    nesting: Nesting
    source: str | None = None


def read_request(
    request: StackRequest,
    stored: TemplateRecord | None,
    *,
    limits: Limits,
    most_resources: int,
    operator: OperatorEnvironment,
    fetched: Mapping[str, str] = EMPTY,
    kept: TemplateRecord | None = None,
) -> Written:
    """Read a request. stored: the version to start from, for an update of what exists. fetched:
    templates by their addresses. kept: the version that hidden values are taken from. Raises
    Invalid with all that is wrong with the texts; what is wrong with their form is in what was read
    of them, so that all else can be looked at."""
    files = {**(stored.files if stored else {}), **fetched, **request.files}
    findings = Findings()
    template = None
    try:
        template = read_template(_template(request, stored, limits))
    except Invalid as error:
        findings.all += error.findings
    try:
        document = _environment(request, stored, template, files, limits)
        environment = parse_environment(
            with_hidden(document, kept) if kept else document, operator.registry
        )
    except Invalid as error:
        environment = Environment(
            registry=Registry(operator=operator.registry), wrong=error.findings
        )
        findings.all += error.findings
    if template is None:
        raise Invalid(findings.all)
    return Written(
        template,
        environment,
        files,
        Nesting(files, operator.files, limits, most_resources),
        _source(request, stored),
    )


def _source(request: StackRequest, stored: TemplateRecord | None) -> str | None:
    """What is not sent anew is as it was."""
    if request.template is None:
        return stored.source if stored else None
    return request.template if isinstance(request.template, str) else None


def _template(request: StackRequest, stored: TemplateRecord | None, limits: Limits) -> Json:
    if request.template is None:
        if stored is not None:
            return stored.template
        findings = Findings()
        findings.add("template", "is missing", "Send it as an object or as text.")
        raise Invalid(findings.all)
    return _document(request.template, "template", limits)


def _environment(
    request: StackRequest,
    stored: TemplateRecord | None,
    template: Template | None,
    files: Mapping[str, str],
    limits: Limits,
) -> dict[str, Json]:
    given = _given(request, template, files, limits)
    return add_to(stored.environment, given) if stored else given


def _given(
    request: StackRequest, template: Template | None, files: Mapping[str, str], limits: Limits
) -> dict[str, Json]:
    """template: None where it could not be read."""
    if request.environment_files:
        findings = Findings()
        for name in request.environment_files:
            if name not in request.files:
                reason = f'"{name}" is not among the files'
                findings.add("environment_files", reason, "Send its text in `files`.")
        _refuse_many(request)
        read = {
            name: _sound(name, request.files, limits, findings)
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
    document = _document(request.environment, "environment", limits)
    parse_environment(document)
    return add_to({}, document)


def _refuse_many(request: StackRequest) -> None:
    """One file that is named a thousand times is merged a thousand times. Raises LimitReached."""
    names = request.environment_files
    size = sum(len(request.files.get(name, "")) for name in names)
    if len(names) > MOST_ENVIRONMENTS or size > MOST_OF_ENVIRONMENTS:
        raise LimitReached(
            f"it names {len(names)} files, with {size} characters",
            place="environment_files",
            remedy=f"The most are {MOST_ENVIRONMENTS}, with {MOST_OF_ENVIRONMENTS} characters;"
            " a file counts each time it is named.",
            code="RequestLimitExceeded",
        )


def with_hidden(document: Mapping[str, Json], kept: TemplateRecord) -> dict[str, Json]:
    """An environment with the hidden values of another version where they stand as they are shown.
    What that one's environment hides is hidden in this one, too: nobody is shown that it does."""
    found = dict(document)
    for section in VALUES:
        if section in found:
            found[section] = unmasked(section, found[section], kept)
    earlier = kept.environment.get(HIDES, [])
    if earlier:
        found[HIDES] = list(dict.fromkeys((*found.get(HIDES, []), *earlier)))
    return found


def unmasked(section: str, said: Mapping[str, Json], kept: TemplateRecord) -> dict[str, Json]:
    """Values of a section of an environment, those that are masked as they were."""
    before = kept.environment.get(section) or {}
    if section == "parameters":
        before = {**before, **kept.parameters}
    return {
        name: before[name] if value == MASK and name in kept.hidden and name in before else value
        for name, value in said.items()
    }


def _sound(
    name: str, files: Mapping[str, str], limits: Limits, findings: Findings
) -> dict[str, Json]:
    """An environment file; where something is wrong with it, findings name it."""
    try:
        document = _file(files[name], name, limits)
        parse_environment(document)
    except Invalid as error:
        findings.all += [
            replace(one, place=f"{name}: {one.place}" if one.place else one.place)
            for one in error.findings
        ]
        return {}
    return document


def _file(text: str, name: str, limits: Limits) -> dict[str, Json]:
    return read_document(text, f"environment {name}", limits) if text.strip() else {}


def _schemas(
    template: Template, files: Mapping[str, str], limits: Limits
) -> dict[str, ParameterSchema]:
    """What environments may speak of: parameters of the template, and of those in files."""
    found: dict[str, ParameterSchema] = {}
    for one in _templates(files, limits):
        found |= one.parameters
    return found | dict(template.parameters)


def _templates(files: Mapping[str, str], limits: Limits) -> Iterator[Template]:
    for name, text in files.items():
        if any(key in text for key in SPELLINGS):
            try:
                yield parse_template(read_document(text, name, limits))
            except Invalid:
                continue  # no template, or told where it is used


def without_hidden(
    files: Mapping[str, str],
    environment_files: Sequence[str],
    hidden: Collection[str],
    limits: Limits,
) -> dict[str, str]:
    """The files as they are kept and shown: environments among them have been merged, and their
    hidden values are nobody's to see."""
    kept = dict(files)
    for name in dict.fromkeys(environment_files):
        said = _file(files[name], name, limits)
        for section in VALUES:
            values = said.get(section)
            if isinstance(values, dict) and (secret := values.keys() & hidden):
                said = {**said, section: {**values, **dict.fromkeys(secret, MASK)}}
                kept[name] = orjson.dumps(said).decode()
    return kept


def _document(value: Json, what: str, limits: Limits) -> dict[str, Json]:
    """Read text, or check what was parsed already. Raises Invalid."""
    if isinstance(value, str):
        return read_document(value, what, limits)
    return check_document(value, what, limits)
