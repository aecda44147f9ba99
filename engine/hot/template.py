"""A template as the language reads it, before parameters are known. Called once for each request;
its findings are of form (sections, keys, kinds), not of meaning."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.errors import Findings, nearest
from engine.hot.declared import DeclaredHook, declared_at, declared_list, escaped
from engine.hot.parameter_schema import read_parameters
from engine.hot.parameters import ParameterSchema
from engine.hot.versions import VERSIONS, Version, template_versions, version_named
from engine.words import Json

VERSION_KEYS = ("heat_template_version", "HeatTemplateFormatVersion", "AWSTemplateFormatVersion")
SECTIONS = (
    "heat_template_version",
    "description",
    "parameter_groups",
    "parameters",
    "resources",
    "outputs",
    "conditions",
    "hooks",
)
RESOURCE_KEYS = (
    "type",
    "properties",
    "metadata",
    "depends_on",
    "deletion_policy",
    "update_policy",
    "description",
    "condition",
    "external_id",
    "hooks",
)
RESOURCE_KEY_SET = frozenset(RESOURCE_KEYS)
USUAL_KEYS = frozenset({"type", "properties", "metadata", "depends_on"})
OUTPUT_KEYS = ("value", "description", "condition")


@dataclass(slots=True)
class ResourceBody:
    """One resource as written; not frozen, because a thousand are made at once. None: not given."""

    name: str
    type: str
    properties: Json = None
    metadata: Json = None
    depends_on: tuple[str, ...] = ()
    deletion_policy: Json = None
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
class Template:
    """version is the date, also where the template gives an alias. document: what was sent."""

    version: str
    description: str
    parameters: Mapping[str, ParameterSchema]
    parameter_groups: tuple[Mapping[str, Json], ...]
    conditions: Mapping[str, Json]
    resources: Mapping[str, ResourceBody]
    outputs: Mapping[str, OutputBody]
    declared: tuple[DeclaredHook, ...]
    document: Mapping[str, Json] = field(repr=False)


def parse_template(document: dict[str, Json]) -> Template:
    """Read a document (see source.py) as a template. Raises Invalid with all findings."""
    findings = Findings()
    version = _version(document, findings)
    findings.raise_if_any()
    for name in document:
        if name not in SECTIONS or (name == "conditions" and not version.has_conditions):
            findings.add(
                name,
                f"The template section is invalid: {name}",
                nearest(name, SECTIONS),
            )
    parameters = read_parameters(_section(document, "parameters", findings), version, findings)
    declared: list[DeclaredHook] = []
    resources = {
        name: body
        for name, given in _section(document, "resources", findings).items()
        if (body := _resource(name, given, version, declared, findings)) is not None
    }
    outputs = {
        name: output
        for name, given in _section(document, "outputs", findings).items()
        if (output := _output(name, given, version, findings)) is not None
    }
    twins = sorted(_section(document, "parameters", Findings()).keys() & resources.keys())
    if twins:
        findings.add("", f"Duplicate names {{{', '.join(map(repr, twins))}}}", "Rename one of two.")
    groups = _groups(document, findings)
    declared += declared_list(document.get("hooks"), "hooks", findings)
    conditions = _section(document, "conditions", findings)
    description = document.get("description")
    if isinstance(description, dict | list):
        findings.add("description", "This must be text.")
    findings.raise_if_any()
    return Template(
        version=version.date,
        description="No description" if description is None else str(description),
        parameters=parameters,
        parameter_groups=groups,
        conditions=conditions,
        resources=resources,
        outputs=outputs,
        declared=tuple(declared),
        document=document,
    )


def _version(document: Mapping[str, Json], findings: Findings) -> Version:
    """Return the version, or any with a finding."""
    given = [key for key in VERSION_KEYS if key in document]
    anything = next(iter(VERSIONS.values()))
    code = "InvalidTemplateVersion"
    if not given:
        wanted = nearest(next(iter(document), ""), VERSION_KEYS[:1])
        remedy = wanted or 'Begin with "heat_template_version: 2021-04-16".'
        findings.add("", "Template format version not found.", remedy, code)
        return anything
    if len(given) > 1:
        findings.add("", f"Ambiguous versions ({', '.join(given)})", "Keep one of them.", code)
        return anything
    key, value = given[0], str(document[given[0]])
    if key != VERSION_KEYS[0]:
        remedy = "Write the template in HOT, with heat_template_version."
        findings.add(
            key, f"Templates of {key} are not available yet in this release.", remedy, code
        )
        return anything
    found = version_named(value)
    if found is None:
        known = template_versions()
        findings.add(
            key,
            f'The template version is invalid: "heat_template_version: {value}". '
            f'"heat_template_version" should be one of: {", ".join(known)}',
            nearest(value, known),
            code,
        )
    return found or anything


def _section(document: Mapping[str, Json], name: str, findings: Findings) -> dict[str, Json]:
    """Return a section that is a map; an empty one equals an empty map."""
    value = document.get(name)
    if value is None or value == {}:
        return {}
    if not isinstance(value, dict):
        findings.add(name, f'"{name}" must be a map.')
        return {}
    return value


def _not_yet(what: str) -> str:
    return f'"{what}" is not available yet in this release.'


def _resource(
    name: str, given: Json, version: Version, declared: list[DeclaredHook], findings: Findings
) -> ResourceBody | None:
    place = f"resources.{name}"
    if type(given) is not dict:
        findings.add(place, "Each Resource must contain a Type key.")
        return None
    if not name or "/" in name:
        findings.add(place, f'The resource name "{name}" must not be empty or contain "/".')
    if not given.keys() <= RESOURCE_KEY_SET:
        _unknown_keys(given, RESOURCE_KEYS, "resource", place, findings)
    kind = given.get("type")
    if not isinstance(kind, str) or not kind:
        reason = f'Resource "{name}" has no type' if kind is None else "The type must be text."
        findings.add(place, reason)
        return None
    depends_on = given.get("depends_on")
    body = ResourceBody(name, kind, given.get("properties"), given.get("metadata"))
    if depends_on is not None:
        body.depends_on = _depends_on(depends_on, place, findings)
    if not given.keys() <= USUAL_KEYS:
        _rarer_keys(body, given, version, place, findings)
        if given.get("hooks") is not None:
            at = f"{place}.hooks"
            declared += declared_at(escaped(name), given["hooks"], at, findings)
    return body


def _unknown_keys(
    given: Mapping[str, Json], known: tuple[str, ...], what: str, place: str, findings: Findings
) -> None:
    for key in given:
        if key not in known:
            reason = f'"{key}" is not a valid keyword inside a {what} definition'
            findings.add(place, reason, nearest(key, known))


def _rarer_keys(
    body: ResourceBody, given: Mapping[str, Json], version: Version, place: str, findings: Findings
) -> None:
    if given.get("update_policy"):
        findings.add(f"{place}.update_policy", _not_yet("update_policy"))
    body.external_id = given.get("external_id")
    if body.external_id is not None and not version.has_conditions:
        reason = (
            f'"external_id" is not a valid keyword inside a resource definition of {version.date}'
        )
        findings.add(place, reason, "Use heat_template_version 2016-10-14 or later.")
    if body.external_id is not None and body.depends_on:
        reason = f"Invalid dependency with external {body.type} resource."
        findings.add(f"{place}.depends_on", reason, "Leave it out.")
    body.deletion_policy = given.get("deletion_policy")
    body.condition = given.get("condition")
    if body.condition is not None and not version.has_conditions:
        reason = (
            f'"condition" is not a valid keyword inside a resource definition of {version.date}'
        )
        findings.add(place, reason, "Use heat_template_version 2016-10-14 or later.")
    description = given.get("description")
    if isinstance(description, dict | list):
        findings.add(f"{place}.description", "This must be text.")
    elif description is not None:
        body.description = str(description)


def _depends_on(value: Json, place: str, findings: Findings) -> tuple[str, ...]:
    if type(value) is str:
        return (value,)
    if type(value) is list and all(type(one) is str for one in value):
        return tuple(value)
    findings.add(f"{place}.depends_on", "This must be a name or a list of names.")
    return ()


def _output(name: str, given: Json, version: Version, findings: Findings) -> OutputBody | None:
    place = f"outputs.{name}"
    if not isinstance(given, dict):
        findings.add(place, "An output must be a map with a value.")
        return None
    _unknown_keys(given, OUTPUT_KEYS, "output", place, findings)
    if "value" not in given:
        findings.add(place, "Each output must contain a value key.", 'Add "value".')
        return None
    if given.get("condition") is not None and not version.has_conditions:
        findings.add(place, '"condition" is not a valid keyword inside a output definition')
    said = given.get("description")
    if isinstance(said, dict | list):
        findings.add(f"{place}.description", "This must be text.")
    text = "No description given" if said is None else str(said)
    return OutputBody(name, given["value"], text, given.get("condition"))


def _groups(document: Mapping[str, Json], findings: Findings) -> tuple[Mapping[str, Json], ...]:
    groups = document.get("parameter_groups")
    if groups is None:
        return ()
    fault: Callable[[str, str], None] = lambda at, said: findings.add(  # noqa: E731
        "", f"Parameter Groups error: parameter_groups{at}: {said}"
    )
    if not isinstance(groups, list):
        fault("", "The parameter_groups should be a list.")
        return ()
    known = _section(document, "parameters", Findings())
    seen: set[str] = set()
    for group in groups:
        names = group.get("parameters") if isinstance(group, dict) else None
        label = f".{group.get('label')}" if isinstance(group, dict) and group.get("label") else ""
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            fault(label, "The parameters must be provided for each parameter group, as a list.")
            continue
        for name in names:
            if name in seen:
                fault(label, f"The {name} parameter must be assigned to one parameter group only.")
            if name not in known:
                fault(label, f"The grouped parameter {name} does not reference a valid parameter.")
            seen.add(name)
    return tuple(groups)
