"""Properties of resources against their type's schema: kinds, required ones, rules, defaults.

Called twice for each resource: when the stack is defined, with calls for what is not known yet,
and before an operation, when everything is.
"""

from collections.abc import Callable, Mapping

from engine.errors import Findings, one_of
from engine.hot.constraints import as_json, broken_rule
from engine.hot.effort import Effort, at_once
from engine.hot.expression import Call, Expression
from engine.hot.parameters import BadValue, ParameterKind, convert, read_number
from engine.hot.resolve import MASK
from engine.hot.schema import Constraint, Kind, Property, TypeSchema
from engine.words import Json


def check_properties(
    schema: TypeSchema,
    properties: Mapping[str, Expression],
    place: str,
    findings: Findings,
    effort: Effort | None = None,
) -> dict[str, Expression]:
    """Check all that is known now; return the properties, known ones as their kind has them.

    place: of the map, such as ``resources.a.properties``. Null counts as not given. effort: what
    rules may cost, together with others; if none is given, they are alone.
    """
    if schema.any_property:
        return dict(properties)
    if schema.renames:
        properties = _renamed(schema.properties, properties, place, findings)
    return _check_fields(schema.properties, properties, place, findings, effort or at_once())


def check_policy(
    schema: TypeSchema,
    policy: Mapping[str, Expression],
    place: str,
    findings: Findings,
    effort: Effort,
) -> dict[str, Expression]:
    """The same for an ``update_policy``."""
    return _check_fields(schema.update_policy, policy, place, findings, effort)


def present_names(schema: TypeSchema, properties: Expression) -> Expression:
    """Return the properties with present names for former ones; faults are told elsewhere."""
    if not schema.renames or not isinstance(properties, dict):
        return properties
    return _renamed(schema.properties, properties, "", Findings())


def _renamed(
    fields: Mapping[str, Property], given: Mapping[str, Expression], place: str, findings: Findings
) -> dict[str, Expression]:
    former = {old: name for name, one in fields.items() for old in one.former_names}
    renamed: dict[str, Expression] = {}
    for old, value in given.items():
        name = former.get(old, old)
        if name != old and name in given:
            reason = f"Property {old} is what {name} was called before; both are given"
            findings.add(place, reason, f"Leave {old} out.")
        elif (one := fields.get(name)) is not None:
            renamed[name] = _renamed_inside(one, value, f"{place}.{old}", findings)
        else:
            renamed[name] = value
    return renamed


def _renamed_inside(one: Property, value: Expression, place: str, findings: Findings) -> Expression:
    if one.fields is not None and type(value) is dict:
        return _renamed(one.fields, value, place, findings)
    if one.items is not None and type(value) is list:
        return [
            _renamed_inside(one.items, item, f"{place}[{index}]", findings)
            for index, item in enumerate(value)
        ]
    return value


def check_resolved(
    schema: TypeSchema, properties: Mapping[str, Json], place: str, findings: Findings
) -> dict[str, Json]:
    """The same for resolved properties, before an operation. Defaults are not filled in."""
    return check_properties(schema, properties, place, findings)


def fill_defaults(schema: TypeSchema, properties: Mapping[str, Json]) -> dict[str, Json]:
    """Return the properties with the schema's defaults where nothing is given, also inside maps."""
    return _filled(schema.properties, properties)


def mask_hidden(schema: TypeSchema, properties: Expression) -> Expression:
    """Return the properties with ``******`` for the values that the schema hides."""
    return _masked(schema.properties, properties)


def has_hidden(fields: Mapping[str, Property]) -> bool:
    """Whether any property, at any depth, is hidden."""
    return any(
        one.hidden
        or (one.fields is not None and has_hidden(one.fields))
        or (one.items is not None and has_hidden({"": one.items}))
        for one in fields.values()
    )


def _check_fields(
    fields: Mapping[str, Property],
    given: Mapping[str, Expression],
    place: str,
    findings: Findings,
    effort: Effort,
) -> dict[str, Expression]:
    checked: dict[str, Expression] = {}
    for name, value in given.items():
        one = fields.get(name)
        if one is None:
            findings.add(
                place, f"Unknown Property {name}", one_of(name, list(fields), "Properties")
            )
        elif type(value) is str and one.kind is Kind.STRING and not one.constraints:
            checked[name] = value
        else:
            checked[name] = _check(one, value, f"{place}.{name}", findings, effort)
    for name, one in fields.items():
        if one.required and name not in given:
            findings.add(place, f"Property {name} not assigned", f'Add "{name}".')
    return checked


def _check(
    one: Property, value: Expression, place: str, findings: Findings, effort: Effort
) -> Expression:
    if type(value) is Call:
        return value
    if value is None:
        if one.default is not None or not one.required:
            return None
        value = EMPTY[one.kind]
    try:
        known = _coerced(one, value)
    except BadValue as bad:
        findings.add(place, bad.safe if one.hidden else str(bad))
        return value
    if type(known) is dict and one.fields is not None:
        known = _check_fields(one.fields, known, place, findings, effort)
    elif type(known) is list and one.items is not None:
        known = [
            _check(one.items, item, f"{place}[{index}]", findings, effort)
            for index, item in enumerate(known)
        ]
    for rule in one.constraints:
        if said := _broken(one, rule, known, effort):
            findings.add(place, said)
    return known


def _coerced(one: Property, value: Json) -> Json:
    """Raises BadValue."""
    if one.converts and one.kind is Kind.LIST and isinstance(value, str):
        return convert(ParameterKind.LIST, value)
    if one.converts and one.kind is Kind.MAP and isinstance(value, str | list):
        return value
    return COERCIONS[one.kind](value)


def _broken(one: Property, rule: Constraint, value: Expression, effort: Effort) -> str | None:
    """A rule about length looks at the container; one about items only at items known now."""
    if rule.kind != "length" and isinstance(value, list):
        value = [item for item in value if not isinstance(item, Call)]
    said = broken_rule(rule, value, effort)
    if said and one.hidden:
        return rule.description or f"its hidden value breaks a constraint of {rule.kind}"
    return said


def _filled(fields: Mapping[str, Property], given: Mapping[str, Json]) -> dict[str, Json]:
    whole = dict(given)
    for name, one in fields.items():
        value = whole.get(name)
        if value is None:
            if one.default is not None:
                whole[name] = one.default
        elif one.fields is not None or one.items is not None:
            whole[name] = _filled_inside(one, value)
    return whole


def _filled_inside(one: Property, value: Json) -> Json:
    if one.fields is not None and isinstance(value, dict):
        return _filled(one.fields, value)
    if one.items is not None and isinstance(value, list):
        return [_filled_inside(one.items, item) for item in value]
    return value


def _masked(fields: Mapping[str, Property], given: Expression) -> Expression:
    if not isinstance(given, dict):
        return given
    return {
        name: _masked_one(fields[name], value) if name in fields else value
        for name, value in given.items()
    }


def _masked_one(one: Property, value: Expression) -> Expression:
    if value is None:
        return None
    if one.hidden:
        return MASK
    if one.items is not None and isinstance(value, list):
        return [_masked_one(one.items, item) for item in value]
    return _masked(one.fields, value) if one.fields is not None else value


# -- kinds ----------------------------------------------------------------------------------------

EMPTY: Mapping[Kind, Json] = {
    Kind.STRING: "",
    Kind.INTEGER: 0,
    Kind.NUMBER: 0,
    Kind.BOOLEAN: False,
    Kind.LIST: [],
    Kind.MAP: {},
    Kind.ANY: None,
}


def _to_string(value: Json) -> Json:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int):
        return str(value)
    raise BadValue(f"Value must be a string; got {_shown(value)}", "Value must be a string")


def _to_integer(value: Json) -> Json:
    safe = "Value is not an integer"
    if not isinstance(value, str | int | float):
        raise BadValue(f"Value '{_shown(value)}' is not an integer", safe)
    try:
        number = int(value)
    except ValueError:
        raise BadValue(f"Value '{value}' is not an integer", safe) from None
    return int(read_number(str(number)))


def _to_number(value: Json) -> Json:
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return read_number(value)
    raise BadValue(f"{_shown(value)} is not a number", "Value is not a number")


def _to_boolean(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        raise BadValue(f'"{_shown(value)}" is not a valid boolean', "Value is not a valid boolean")
    return word == "true"


def _to_list(value: Json) -> Json:
    if isinstance(value, list):
        return value
    raise BadValue(f'"{_shown(value)}" is not a list', "Value is not a list")


def _to_map(value: Json) -> Json:
    if isinstance(value, dict):
        return value
    raise BadValue(f'"{_shown(value)}" is not a map', "Value is not a map")


def _shown(value: Json) -> str:
    """A value for a message; calls inside it cannot be shown as JSON."""
    text = value if isinstance(value, str) else as_json(value)
    return text if len(text) <= 200 else text[:200] + "..."


COERCIONS: Mapping[Kind, Callable[[Json], Json]] = {
    Kind.STRING: _to_string,
    Kind.INTEGER: _to_integer,
    Kind.NUMBER: _to_number,
    Kind.BOOLEAN: _to_boolean,
    Kind.LIST: _to_list,
    Kind.MAP: _to_map,
    Kind.ANY: lambda value: value,
}
