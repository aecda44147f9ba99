"""A template as written, before parameters are known.

Findings here concern form (sections, keys, types), not meaning. HOT and CFN templates have the same
model; language/dialect.py has the names that differ.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from engine.errors import Finding, Findings, Invalid, nearest, one_of
from engine.hot.functions.function import QUOTE_NAMES
from engine.hot.language.dialect import DIALECTS, HOT, Dialect
from engine.hot.language.versions import (
    EXTENDED_RESOURCE_KEYS,
    EXTENDED_SECTIONS,
    EXTENDED_SINCE,
    VERSIONS,
    Version,
    find_version,
    known_versions,
)
from engine.hot.schema.parameters import ParameterSchema
from engine.hot.syntax.data_names import data_name
from engine.hot.syntax.keyed_names import base_name
from engine.hot.template.cfn_parameters import read_cfn_parameters
from engine.hot.template.hook_declarations import (
    HookDeclaration,
    escape_glob,
    read_hook_list,
    read_resource_hooks,
    refuse_references,
)
from engine.hot.template.hot_parameters import read_groups, read_parameters
from engine.hot.template.moved_and_imported import (
    ImportedResource,
    MovedResource,
    read_imported,
    read_moved,
)
from engine.words import Json

if TYPE_CHECKING:
    from engine.hot.evaluation.evaluator import ForEachItem

NO_TYPE: Final = "Each Resource must contain a Type key."
#: Heat's message about a resource that is not a map, for its Python type.
NO_RESOURCE: Final = '"resources" must contain a map of resource maps. Found a [{}] instead'
DATA_KEYS: Final = ("type", "id", "properties", "description", "condition", "for_each")
NEWEST_OF_HEAT: Final = "2021-04-16"
NO_VERSION: Final = "The template version is invalid: Template version was not provided"
DATA_FORM: Final = "Write {type: OS::Neutron::Net, id: {get_param: network}}, for example."


@dataclass(slots=True)
class ResourceBody:
    """One resource as written. None: not given. each: the item of `for_each` that the resource was
    made for. computed_depends_on: `depends_on` with functions, instead of names. is_data: an entry
    of the section `data`. Not frozen, because thousands are created per request.
    """

    name: str
    type: str
    properties: Json = None
    metadata: Json = None
    depends_on: tuple[str, ...] = ()
    computed_depends_on: Json = None
    deletion_policy: Json = None
    update_policy: Json = None
    description: str = ""
    condition: Json = None
    external_id: Json = None
    lifecycle: Json = None
    for_each: Json = None
    each: "ForEachItem | None" = None
    preconditions: Json = None
    postconditions: Json = None
    is_data: bool = False

    def place_in(self, section: str) -> str:
        """Return its place in a template whose resources are in this section."""
        return self.name if self.is_data else f"{section}.{self.name}"


@dataclass(frozen=True, slots=True)
class OutputBody:
    """One output as written."""

    name: str
    value: Json
    description: str = "No description given"
    condition: Json = None
    preconditions: Json = None
    postconditions: Json = None


@dataclass(frozen=True, slots=True)
class UnreadableNames:
    """Names whose bodies could not be read. References to them are not reported again."""

    parameters: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Template:
    """version: the date, also if the template has an alias. mappings: the CFN section, unevaluated.
    document: the document as received. findings: faults of form; no stack can be created from such
    a template, but the rest of it can be checked. warnings: about its text and its form.
    """

    version: str
    description: str
    parameters: Mapping[str, ParameterSchema]
    parameter_groups: tuple[Mapping[str, Json], ...]
    mappings: Mapping[str, Json]
    conditions: Mapping[str, Json]
    resources: Mapping[str, ResourceBody]
    outputs: Mapping[str, OutputBody]
    hook_declarations: tuple[HookDeclaration, ...]
    document: Mapping[str, Json] = field(repr=False)
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    unreadable: UnreadableNames = field(default_factory=UnreadableNames)
    locals: Mapping[str, Json] = field(default_factory=dict)
    moved: tuple[MovedResource, ...] = ()
    imported: tuple[ImportedResource, ...] = ()
    rules: Json = None

    def body_of(self, name: str) -> ResourceBody:
        """Return the body of a resource; of one with a key, as it is written."""
        return self.resources.get(name) or self.resources[base_name(name) or name]


def parse_template(document: dict[str, Json]) -> Template:
    """Read a document (syntax/document.py) as a template. Raises Invalid with all findings."""
    template = read_template(document)
    if template.findings:
        raise Invalid(template.findings)
    return template


def read_template(document: dict[str, Json], read: Findings | None = None) -> Template:
    """Read a document and keep the faults in `findings`. Raises Invalid only if the rest cannot be
    checked: the version is unknown, or a section is unknown or not a map. read: warnings about its
    text.
    """
    findings = Findings(warned=dict(read.warned) if read else {})
    version = _version(document, findings)
    findings.raise_if_any()
    dialect = version.dialect
    _check_sections(document, version, findings)
    written = _section(document, dialect.parameters, findings)
    read_each = read_parameters if dialect is HOT else read_cfn_parameters
    parameters = read_each(written, version, findings)
    declarations: list[HookDeclaration] = []
    resources = {
        name: body
        for name, given in _section(document, dialect.resources, findings).items()
        if (body := _resource(name, given, version, declarations, findings)) is not None
    }
    if version.extended:
        _add_data(resources, document, findings)
    outputs = {
        name: output
        for name, given in _section(document, dialect.outputs, findings).items()
        if (output := _output(name, given, version, findings)) is not None
    }
    duplicates = sorted(written.keys() & resources.keys())
    if duplicates:
        reason = f"Duplicate names {{{', '.join(map(repr, duplicates))}}}"
        at = f"{dialect.resources}.{duplicates[0]}"
        findings.add("", reason, "Rename the resource or the parameter.", at=at)
    groups = read_groups(document.get("parameter_groups"), written, findings)
    declarations += read_hook_list(document.get(dialect.hooks), dialect.hooks, findings)
    if version.extended:
        refuse_references(declarations, findings)
    conditions = {}  # in versions without them, the section is reported already
    if version.has_conditions:
        conditions = _section(document, dialect.conditions, findings)
    description = _text(document, dialect.description, dialect.description, findings)
    mappings = {} if dialect is HOT else _section(document, "Mappings", findings)
    local_values = _locals(document, version, written, findings) if version.extended else {}
    moved, imported = _moved_and_imported(document, version, findings)
    if not _has_readable_sections(document, version):
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
        hook_declarations=tuple(declarations),
        document=document,
        findings=tuple(findings.all),
        warnings=findings.warnings,
        locals=local_values,
        unreadable=_unreadable_names(document, dialect, parameters, resources, outputs)
        if findings.all
        else UnreadableNames(),
        moved=moved,
        imported=imported,
        rules=document.get("rules") if version.extended else None,
    )


def _moved_and_imported(
    document: Mapping[str, Json], version: Version, findings: Findings
) -> tuple[tuple[MovedResource, ...], tuple[ImportedResource, ...]]:
    if not version.extended:
        return (), ()
    written = document.get("resources")
    resources = written if isinstance(written, dict) else {}
    return (
        read_moved(document.get("moved"), resources, findings),
        read_imported(document.get("import"), resources, findings),
    )


def _has_readable_sections(document: Mapping[str, Json], version: Version) -> bool:
    """Return whether all sections are known and those with names are maps."""
    dialect = version.dialect
    maps = (
        dialect.parameters,
        dialect.resources,
        dialect.outputs,
        dialect.conditions,
        "Mappings",
        "locals",
        "data",
    )
    return document.keys() <= set(version.sections) and all(
        isinstance(document.get(name) or {}, dict) for name in maps
    )


def _unreadable_names(
    document: Mapping[str, Json], dialect: Dialect, *read: Mapping[str, object]
) -> UnreadableNames:
    """read: the bodies that were read, of parameters, resources and outputs, in this order."""
    names = [
        frozenset(document.get(section) or {})
        for section in (dialect.parameters, dialect.resources, dialect.outputs)
    ]
    names[1] |= frozenset(map(data_name, document.get("data") or {} if dialect is HOT else {}))
    return UnreadableNames(*(each - known.keys() for each, known in zip(names, read, strict=True)))


def without_resources(document: Mapping[str, Json], names: Collection[str]) -> dict[str, Json]:
    """Return the document of a valid template without some of its resources."""
    section = _dialect_of(document).resources
    left = {name: body for name, body in (document.get(section) or {}).items() if name not in names}
    return {**document, section: left}


def empty_template(document: Mapping[str, Json]) -> dict[str, Json]:
    """Return a document of the same version without resources."""
    key = _dialect_of(document).version
    return {key: document.get(key, "")}


def _dialect_of(document: Mapping[str, Json]) -> Dialect:
    return next((one for key, one in DIALECTS.items() if key in document), HOT)


def _version(document: Mapping[str, Json], findings: Findings) -> Version:
    """Return the version, or an arbitrary one with a finding."""
    given = [key for key in DIALECTS if key in document]
    anything = next(iter(VERSIONS.values()))
    code = "InvalidTemplateVersion"
    if not given:
        wanted = nearest(next(iter(document), ""), [*DIALECTS])
        remedy = wanted or f'Begin with "heat_template_version: {NEWEST_OF_HEAT}".'
        findings.add("", NO_VERSION, remedy, code, at=HOT.version)
        return anything
    if len(given) > 1:
        reason = f"The template version is invalid: Ambiguous versions ({', '.join(given)})"
        findings.add("", reason, "Keep one of them.", code, at=given[1])
        return anything
    key = given[0]
    if not isinstance(document[key], str):
        remedy = f"Write one of these as text: {', '.join(known_versions(key))}."
        findings.add(key, NO_VERSION, remedy, code)
        return anything
    value = str(document[key])
    found = find_version(key, value)
    if found is None:
        known = known_versions(key)
        should = f"should be{' one of' if len(known) > 1 else ''}: {', '.join(known)}"
        reason = f'The template version is invalid: "{key}: {value}". "{key}" {should}'
        newest = NEWEST_OF_HEAT if key == HOT.version else known[-1]
        remedy = nearest(value, known) or f"Use {newest}."
        findings.add(key, reason, remedy, code)
    return found or anything


def _check_sections(document: Mapping[str, Json], version: Version, findings: Findings) -> None:
    dialect = version.dialect
    for name in document:
        if name not in version.sections:
            remedy = one_of(name, version.sections, "Sections")
            if dialect is HOT and name in EXTENDED_SECTIONS:
                remedy = f"Use heat_template_version {EXTENDED_SINCE}."
        elif name == dialect.conditions and not version.has_conditions:
            remedy = f"Use {dialect.conditions_since}."
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
        sentence = ""
        if name.lower() == "conditions":
            sentence = f"Condition definitions must be a map. Found {_kind_of(value)} instead"
        remedy = "Write names with their definitions."
        findings.add(name, f'"{name}" must be a map.', remedy, heat_reason=sentence)
        return {}
    return value


def _locals(
    document: Mapping[str, Json],
    version: Version,
    parameters: Mapping[str, Json],
    findings: Findings,
) -> dict[str, Json]:
    section = _section(document, "locals", findings)
    for name in section:
        if name in parameters or name == "each" or not name or {*"{}$"} & {*name}:
            reason = f'A local cannot have the name "{name}"'
            reason += ": a parameter has it." if name in parameters else "."
            findings.add(f"locals.{name}", reason, "Choose another name.")
    return section


def _text(given: Mapping[str, Json], key: str, place: str, findings: Findings) -> str | None:
    """Return a scalar as text, or None when there is none."""
    value = given.get(key)
    if isinstance(value, dict | list):
        findings.add(place, "This must be text.", "Write it in quotes.")
        return None
    return None if value is None else str(value)


def _resource(
    name: str,
    given: Json,
    version: Version,
    declarations: list[HookDeclaration],
    findings: Findings,
) -> ResourceBody | None:
    dialect = version.dialect
    place = f"{dialect.resources}.{name}"
    if type(given) is not dict:
        remedy = f"Write {name}: {{{dialect.type}: TYPE}}."
        sentence = NO_RESOURCE.format(type(given)) if given and dialect is HOT else ""
        findings.add(place, dialect.missing_type, remedy, heat_reason=sentence)
        return None
    if "/" in name:
        findings.add(place, 'Resource name may not contain "/"', "Rename it.")
    elif not name:
        findings.add(place, "The name of a resource must not be empty.", "Rename it.")
    if not given.keys() <= version.resource_keys:
        _unknown_keys(given, version.known_resource_keys, "resource", version, place, findings)
    if (kind := _type(name, given, version, place, findings)) is None:
        return None
    depends_on = given.get(dialect.depends_on)
    body = ResourceBody(name, kind, given.get(dialect.properties), given.get(dialect.metadata))
    if version.extended and _has_calls(depends_on):
        body.computed_depends_on = depends_on
    elif depends_on is not None:
        body.depends_on = _depends_on(name, depends_on, dialect.depends_on, place, findings)
    if not given.keys() <= version.common_resource_keys:
        _read_other_keys(body, given, version, place, findings)
        if given.get(dialect.hooks) is not None:
            at = f"{place}.{dialect.hooks}"
            declarations += read_resource_hooks(
                escape_glob(name), given[dialect.hooks], at, findings
            )
    return body


def _type(
    name: str, given: Mapping[str, Json], version: Version, place: str, findings: Findings
) -> str | None:
    key = version.dialect.type
    kind = given.get(key)
    if isinstance(kind, str) and kind:
        return kind if _is_literal(kind, version, f"{place}.{key}", findings) else None
    if kind is None and _has_misspelt_key(given, key, version):
        return None  # reported as an unknown key
    missing = NO_TYPE if key in given else version.dialect.missing_type
    reason = missing if kind in (None, "") else wrong_kind(name, key, "string")
    findings.add(place, reason, f'Add "{key}: OS::Heat::None", or another one.')
    return None


def _is_literal(kind: str, version: Version, place: str, findings: Findings) -> bool:
    """Report a type with a reference, which only other places of the own versions may have."""
    if not version.extended or "${" not in kind:
        return True
    reason = "References are not replaced in types."
    remedy = "Write the type. To choose one, use conditions, or map it in resource_registry."
    findings.add(place, reason, remedy)
    return False


def _has_misspelt_key(given: Mapping[str, Json], key: str, version: Version) -> bool:
    """Return whether an unknown key of a resource is reported that resembles this one."""
    known, found = version.known_resource_keys, nearest(key, (key,))
    return not version.dialect.ignores_unknown_keys and any(
        one not in known and nearest(str(one), known) == found for one in given
    )


def _add_data(
    resources: dict[str, ResourceBody], document: Mapping[str, Json], findings: Findings
) -> None:
    """Read the section `data`, and add its entries to the resources."""
    for entry, given in _section(document, "data", findings).items():
        name = place = data_name(entry)
        if name in resources:
            reason = f'A resource has the name "{name}" of this data.'
            findings.add(place, reason, "Rename one of the two.")
        elif (body := _data(name, given, findings)) is not None:
            resources[name] = body


def _data(name: str, given: Json, findings: Findings) -> ResourceBody | None:
    place = name
    if not isinstance(given, dict):
        findings.add(place, "Data must be a map with type and id.", DATA_FORM)
        return None
    for key in given:
        if key not in DATA_KEYS:
            reason = f'"{key}" is not a valid keyword inside data'
            findings.add(f"{place}.{key}", reason, one_of(str(key), DATA_KEYS, "Keys"))
    if name == data_name("") or "/" in name:
        findings.add(place, "The name of data must not be empty or contain a slash.", "Rename it.")
    kind = given.get("type")
    if not isinstance(kind, str) or not kind:
        findings.add(f"{place}.type", "Data has no type.", DATA_FORM)
        return None
    if not _is_literal(kind, VERSIONS[EXTENDED_SINCE], f"{place}.type", findings):
        return None
    if given.get("id") is None:
        reason = "Data has no id: the physical ID of what is read."
        findings.add(place, reason, DATA_FORM)
        return None
    description = _text(given, "description", f"{place}.description", findings)
    body = ResourceBody(
        name,
        kind,
        given.get("properties"),
        description=description or "",
        condition=given.get("condition"),
        external_id=given["id"],
        for_each=given.get("for_each"),
        is_data=True,
    )
    if body.for_each is not None and not _varies(body):
        reason = "All entries of this for_each would have the same id."
        findings.add(f"{place}.id", reason, "Use ${each.key} or ${each.value} in it.")
    return body


def _unknown_keys(
    given: Mapping[str, Json],
    known: tuple[str, ...],
    what: str,
    version: Version,
    place: str,
    findings: Findings,
) -> None:
    dialect = version.dialect
    for key in given:
        if key in known:
            continue
        near = nearest(key, known)
        if key in dialect.ignored_keys or (near and dialect.ignores_unknown_keys):
            remedy = near or "Remove it."
            findings.warn(f"{place}.{key}", f'"{key}" has no effect here.', remedy, "NoEffect")
        elif what == "output" and not version.extended:
            remedy = near or one_of(key, known, "Keys")
            findings.warn(
                f"{place}.{key}", f'"{key}" has no effect in an output.', remedy, "NoEffect"
            )
        elif not dialect.ignores_unknown_keys:
            article = "an" if what == "output" else "a"
            reason = f'"{key}" is not a valid keyword inside {article} {what} definition'
            if key in EXTENDED_RESOURCE_KEYS:
                near = USE_EXTENDED
            remedy = near or one_of(key, known, "Keys")
            findings.add(place, reason, remedy, at=f"{place}.{key}")


def _read_other_keys(
    body: ResourceBody, given: Mapping[str, Json], version: Version, place: str, findings: Findings
) -> None:
    dialect = version.dialect
    body.update_policy = given.get(dialect.update_policy)
    if dialect is HOT and given.get("external_id") is not None:
        _external_id(body, given, version, place, findings)
    body.deletion_policy = given.get(dialect.deletion_policy)
    body.condition = given.get(dialect.condition)
    if body.condition is not None and not isinstance(body.condition, str | bool | dict):
        reason = wrong_kind(body.name, dialect.condition, "string_or_boolean")
        remedy = "Write the name of a condition, true, false, or a function of conditions."
        findings.add(f"{place}.{dialect.condition}", reason, remedy)
        body.condition = None
    elif body.condition is not None and not version.has_conditions:
        if dialect is HOT:
            _refuse_newer_key(dialect.condition, "resource", version, place, findings)
            body.condition = None
        else:
            body.condition = None
            _warn_of_newer_key(dialect.condition, version, place, findings)
    if isinstance(description := given.get(dialect.description), dict | list):
        reason = wrong_kind(body.name, dialect.description, "string")
        findings.add(f"{place}.{dialect.description}", reason, "Write a text.")
    else:
        body.description = "" if description is None else str(description)
    if version.extended:
        _read_extended_keys(body, given, place, findings)


def _read_extended_keys(
    body: ResourceBody, given: Mapping[str, Json], place: str, findings: Findings
) -> None:
    """Read the keys that only versions of Headgate have."""
    body.for_each = given.get("for_each")
    if "for_each" in given and body.for_each is None:
        reason = '"for_each" has no value.'
        findings.add(f"{place}.for_each", reason, "Write a list of keys, or [] for no resource.")
    if body.for_each is not None and body.external_id is not None and not _varies(body):
        reason = "All resources of this for_each would have the same external_id."
        findings.add(f"{place}.external_id", reason, "Use ${each.key} or ${each.value} in it.")
    body.lifecycle = given.get("lifecycle")
    body.preconditions = given.get("preconditions")
    body.postconditions = given.get("postconditions")


def _varies(body: ResourceBody) -> bool:
    return "${each." in str(body.external_id)


def _external_id(
    body: ResourceBody, given: Mapping[str, Json], version: Version, place: str, findings: Findings
) -> None:
    body.external_id = given["external_id"]
    if not version.has_conditions:
        _refuse_newer_key("external_id", "resource", version, place, findings)
    if body.depends_on or body.computed_depends_on is not None:
        reason = f"Invalid dependency with external {body.type} resource."
        findings.add(f"{place}.depends_on", reason, "Leave it out.")


def _refuse_newer_key(
    key: str, what: str, version: Version, place: str, findings: Findings
) -> None:
    """Report a key that is valid only in versions with conditions."""
    reason = f"Invalid keyword(s) inside a {what} definition: {key}"
    remedy = f"Use {version.dialect.conditions_since}."
    findings.add(place, reason, remedy, at=f"{place}.{key}")


def _warn_of_newer_key(key: str, version: Version, place: str, findings: Findings) -> None:
    """Warn of a key that has no effect in versions without conditions, as in Heat."""
    reason = f'"{key}" has no effect in version {version.date}.'
    findings.warn(f"{place}.{key}", reason, f"Use {version.dialect.conditions_since}.", "NoEffect")


def _has_calls(depends_on: Json) -> bool:
    items = depends_on if isinstance(depends_on, list) else [depends_on]
    return any(isinstance(one, dict) or (isinstance(one, str) and "${" in one) for one in items)


def _kind_of(value: Json) -> str:
    """Return the kind of a value as Heat names it."""
    return f"a {type(value).__name__}"


def _depends_on(
    name: str, value: Json, key: str, place: str, findings: Findings
) -> tuple[str, ...]:
    if type(value) is str:
        return (value,)
    if type(value) is list and all(type(one) is str for one in value):
        return tuple(value)
    reason = wrong_kind(name, key, "list or string")
    if isinstance(value, list):
        reason = f"Resource {name} {key} must be a list of strings"
    items = value if isinstance(value, list) else [value]
    is_name_read_as_boolean = any(isinstance(one, bool) for one in items)
    remedy = QUOTE_NAMES if is_name_read_as_boolean else "Write a name or a list of names."
    findings.add(f"{place}.{key}", reason, remedy)
    return ()


#: The remedy about a key that only Headgate's own versions have.
USE_EXTENDED: Final = f"Use heat_template_version {EXTENDED_SINCE}."


def wrong_kind(name: str, key: str, kind: str) -> str:
    """Return the reason, as Heat's, if the value of a key of a resource has another kind."""
    return f"Resource {name} {key} type must be {kind}"


def _output(name: str, given: Json, version: Version, findings: Findings) -> OutputBody | None:
    dialect = version.dialect
    place = f"{dialect.outputs}.{name}"
    if not isinstance(given, dict):
        findings.add(
            place,
            "An output must be a map.",
            f"Write {name}: {{{dialect.value}: VALUE}}.",
            heat_reason=f"Output definitions must be a map. Found {_kind_of(given)} instead",
        )
        return None
    _unknown_keys(given, version.output_keys, "output", version, place, findings)
    if dialect.value not in given:
        reason = f"Each output definition must contain a {dialect.value} key."
        findings.add(place, reason, f'Add "{dialect.value}".')
        return None
    condition = given.get(dialect.condition)
    if condition is not None and not version.has_conditions:
        condition = None
        _warn_of_newer_key(dialect.condition, version, place, findings)
    description = _text(given, dialect.description, f"{place}.{dialect.description}", findings)
    text = "No description given" if description is None else description
    body = OutputBody(name, given[dialect.value], text, condition)
    if not version.extended:
        return body
    before, after = given.get("preconditions"), given.get("postconditions")
    return replace(body, preconditions=before, postconditions=after)
