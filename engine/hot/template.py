"""A template as the language reads it, before parameters are known. Called once for each request;
its findings are of form (sections, keys, kinds), not of meaning. HOT and CFN are one model, spelled
in two ways (spelling.py)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from engine.errors import Finding, Findings, Invalid, nearest, one_of
from engine.hot.cfn_parameters import read_cfn_parameters
from engine.hot.declared import DeclaredHook, declared_at, declared_list, escaped
from engine.hot.parameter_groups import read_groups
from engine.hot.parameter_schema import read_parameters
from engine.hot.parameters import ParameterSchema
from engine.hot.spelling import HOT, SPELLINGS, Spelling
from engine.hot.versions import VERSIONS, Version, version_named, versions_of
from engine.words import Json


@dataclass(slots=True)
class ResourceBody:
    """One resource as written; not frozen, because a thousand are made at once. None: not given."""

    name: str
    type: str
    properties: Json = None
    metadata: Json = None
    depends_on: tuple[str, ...] = ()
    deletion_policy: Json = None
    update_policy: Json = None
    description: str = ""
    condition: Json = None
    external_id: Json = None


@dataclass(frozen=True, slots=True)
class OutputBody:
    name: str
    value: Json
    description: str = "No description given"
    condition: Json = None


@dataclass(frozen=True, slots=True)
class Unsound:
    """Names of what could not be read: a finding tells why, and whoever names it is right."""

    parameters: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Template:
    """version is the date, also where the template gives an alias. document: what was sent.

    mappings: what CFN templates look up, as it is written; nothing in there is called. wrong: what
    is wrong with its form; no stack is made of such a one, but its meaning can be looked at.
    """

    version: str
    description: str
    parameters: Mapping[str, ParameterSchema]
    parameter_groups: tuple[Mapping[str, Json], ...]
    mappings: Mapping[str, Json]
    conditions: Mapping[str, Json]
    resources: Mapping[str, ResourceBody]
    outputs: Mapping[str, OutputBody]
    declared: tuple[DeclaredHook, ...]
    document: Mapping[str, Json] = field(repr=False)
    wrong: tuple[Finding, ...] = ()
    unsound: Unsound = field(default_factory=Unsound)


def parse_template(document: dict[str, Json]) -> Template:
    """Read a document (see source.py) as a template. Raises Invalid with all findings."""
    template = read_template(document)
    if template.wrong:
        raise Invalid(template.wrong)
    return template


def read_template(document: dict[str, Json]) -> Template:
    """The same with findings in `wrong`, of what could be read; Invalid when that says nothing of
    the rest: its version is not known, or a section cannot be told."""
    findings = Findings()
    version = _version(document, findings)
    findings.raise_if_any()
    words = version.spelling
    _check_sections(document, version, findings)
    written = _section(document, words.parameters, findings)
    read_each = read_parameters if words is HOT else read_cfn_parameters
    parameters = read_each(written, version, findings)
    declared: list[DeclaredHook] = []
    resources = {
        name: body
        for name, given in _section(document, words.resources, findings).items()
        if (body := _resource(name, given, version, declared, findings)) is not None
    }
    outputs = {
        name: output
        for name, given in _section(document, words.outputs, findings).items()
        if (output := _output(name, given, version, findings)) is not None
    }
    twins = sorted(written.keys() & resources.keys())
    if twins:
        findings.add("", f"Duplicate names {{{', '.join(map(repr, twins))}}}", "Rename one of two.")
    groups = read_groups(document.get("parameter_groups"), written, findings)
    declared += declared_list(document.get(words.hooks), words.hooks, findings)
    conditions = _section(document, words.conditions, findings)
    description = _text(document, words.description, words.description, findings)
    mappings = {} if words is HOT else _section(document, "Mappings", findings)
    if not _is_told_apart(document, words):
        findings.raise_if_any()
    return Template(
        version=version.date,
        description="No description" if description is None else description,
        parameters=parameters,
        parameter_groups=groups,
        mappings=mappings,
        conditions=conditions,
        resources=resources,
        outputs=outputs,
        declared=tuple(declared),
        document=document,
        wrong=tuple(findings.all),
        unsound=_unsound(document, words, parameters, resources, outputs)
        if findings.all
        else Unsound(),
    )


def _is_told_apart(document: Mapping[str, Json], words: Spelling) -> bool:
    """Whether each section is one that there is, and those that hold names are maps."""
    maps = (words.parameters, words.resources, words.outputs, words.conditions, "Mappings")
    return document.keys() <= set(words.sections) and all(
        isinstance(document.get(name) or {}, dict) for name in maps
    )


def _unsound(document: Mapping[str, Json], words: Spelling, *read: Mapping[str, object]) -> Unsound:
    """read: of parameters, resources and outputs, in this order."""
    sections = (words.parameters, words.resources, words.outputs)
    each = zip(sections, read, strict=True)
    return Unsound(
        *(frozenset((document.get(name) or {}).keys() - known.keys()) for name, known in each)
    )


def without(document: Mapping[str, Json], names: Collection[str]) -> dict[str, Json]:
    """The document of a sound template with some of its resources left out."""
    section = _spelling(document).resources
    left = {name: body for name, body in (document.get(section) or {}).items() if name not in names}
    return {**document, section: left}


def emptied(document: Mapping[str, Json]) -> dict[str, Json]:
    """A template of the same version, of nothing."""
    key = _spelling(document).version
    return {key: document.get(key, "")}


def _spelling(document: Mapping[str, Json]) -> Spelling:
    return next((one for key, one in SPELLINGS.items() if key in document), HOT)


def _version(document: Mapping[str, Json], findings: Findings) -> Version:
    """Return the version, or any with a finding."""
    given = [key for key in SPELLINGS if key in document]
    anything = next(iter(VERSIONS.values()))
    code = "InvalidTemplateVersion"
    if not given:
        wanted = nearest(next(iter(document), ""), [*SPELLINGS])
        remedy = wanted or 'Begin with "heat_template_version: 2021-04-16".'
        findings.add("", "Template format version not found.", remedy, code)
        return anything
    if len(given) > 1:
        findings.add("", f"Ambiguous versions ({', '.join(given)})", "Keep one of them.", code)
        return anything
    key, value = given[0], str(document[given[0]])
    found = version_named(key, value)
    if found is None:
        known = versions_of(key)
        should = f"should be{' one of' if len(known) > 1 else ''}: {', '.join(known)}"
        reason = f'The template version is invalid: "{key}: {value}". "{key}" {should}'
        findings.add(key, reason, nearest(value, known), code)
    return found or anything


def _check_sections(document: Mapping[str, Json], version: Version, findings: Findings) -> None:
    words = version.spelling
    for name in document:
        if name not in words.sections:
            remedy = one_of(name, words.sections, "Sections")
        elif name == words.conditions and not version.has_conditions:
            remedy = f"Use {words.conditional}."
        else:
            continue
        reason = f"The template section is invalid: {name}"
        findings.add(name, reason, remedy)


def _section(document: Mapping[str, Json], name: str, findings: Findings) -> dict[str, Json]:
    """Return a section that is a map; an empty one equals an empty map."""
    value = document.get(name)
    if value is None or value == {}:
        return {}
    if not isinstance(value, dict):
        findings.add(name, f'"{name}" must be a map.')
        return {}
    return value


def _text(given: Mapping[str, Json], key: str, place: str, findings: Findings) -> str | None:
    """Return a scalar as text, or None when there is none."""
    value = given.get(key)
    if isinstance(value, dict | list):
        findings.add(place, "This must be text.")
        return None
    return None if value is None else str(value)


def _resource(
    name: str, given: Json, version: Version, declared: list[DeclaredHook], findings: Findings
) -> ResourceBody | None:
    words = version.spelling
    place = f"{words.resources}.{name}"
    if type(given) is not dict:
        findings.add(place, "Each Resource must contain a Type key.")
        return None
    if not name or "/" in name:
        findings.add(place, f'The resource name "{name}" must not be empty or contain "/".')
    if not given.keys() <= version.resource_keys:
        _unknown_keys(given, words.resource_keys, "resource", version, place, findings)
    kind = given.get(words.type)
    if not isinstance(kind, str) or not kind:
        reason = f'Resource "{name}" has no type' if kind is None else "The type must be text."
        findings.add(place, reason, f'Add "{words.type}: OS::Heat::None", or another one.')
        return None
    depends_on = given.get(words.depends_on)
    body = ResourceBody(name, kind, given.get(words.properties), given.get(words.metadata))
    if depends_on is not None:
        body.depends_on = _depends_on(depends_on, f"{place}.{words.depends_on}", findings)
    if not given.keys() <= version.usual_keys:
        _rarer_keys(body, given, version, place, findings)
        if given.get(words.hooks) is not None:
            at = f"{place}.{words.hooks}"
            declared += declared_at(escaped(name), given[words.hooks], at, findings)
    return body


def _unknown_keys(
    given: Mapping[str, Json],
    known: tuple[str, ...],
    what: str,
    version: Version,
    place: str,
    findings: Findings,
) -> None:
    words = version.spelling
    for key in given:
        if key in known or key in words.meaningless:
            continue
        near = nearest(key, known)
        if near or not words.passes_over:
            reason = f'"{key}" is not a valid keyword inside a {what} definition'
            findings.add(place, reason, near or one_of(key, known, "Keys"))


def _rarer_keys(
    body: ResourceBody, given: Mapping[str, Json], version: Version, place: str, findings: Findings
) -> None:
    words = version.spelling
    body.update_policy = given.get(words.update_policy)
    if words is HOT and given.get("external_id") is not None:
        _external_id(body, given, version, place, findings)
    body.deletion_policy = given.get(words.deletion_policy)
    body.condition = given.get(words.condition)
    if body.condition is not None and not version.has_conditions:
        _too_early(words.condition, "resource", version, place, findings)
    said = _text(given, words.description, f"{place}.{words.description}", findings)
    body.description = "" if said is None else said


def _external_id(
    body: ResourceBody, given: Mapping[str, Json], version: Version, place: str, findings: Findings
) -> None:
    body.external_id = given["external_id"]
    if not version.has_conditions:
        _too_early("external_id", "resource", version, place, findings)
    if body.depends_on:
        reason = f"Invalid dependency with external {body.type} resource."
        findings.add(f"{place}.depends_on", reason, "Leave it out.")


def _too_early(key: str, what: str, version: Version, place: str, findings: Findings) -> None:
    """A key that came with conditions."""
    reason = f'"{key}" is not a valid keyword inside a {what} definition of {version.date}'
    findings.add(place, reason, f"Use {version.spelling.conditional}.")


def _depends_on(value: Json, place: str, findings: Findings) -> tuple[str, ...]:
    if type(value) is str:
        return (value,)
    if type(value) is list and all(type(one) is str for one in value):
        return tuple(value)
    findings.add(place, "This must be a name or a list of names.")
    return ()


def _output(name: str, given: Json, version: Version, findings: Findings) -> OutputBody | None:
    words = version.spelling
    place = f"{words.outputs}.{name}"
    if not isinstance(given, dict):
        findings.add(place, "An output must be a map with a value.")
        return None
    _unknown_keys(given, words.output_keys, "output", version, place, findings)
    if words.value not in given:
        reason = f"Each output must contain a {words.value} key."
        findings.add(place, reason, f'Add "{words.value}".')
        return None
    condition = given.get(words.condition)
    if condition is not None and not version.has_conditions:
        _too_early(words.condition, "output", version, place, findings)
    said = _text(given, words.description, f"{place}.{words.description}", findings)
    text = "No description given" if said is None else said
    return OutputBody(name, given[words.value], text, condition)
