"""Checks of resource properties against the type's schema: kinds, required properties, constraints,
defaults.

Each resource is checked when the stack is defined, with calls for unknown values, and before an
operation, when all values are known.
"""

from collections.abc import Callable, Mapping

from engine.errors import Findings, Quoting, beginning_of, one_of, public
from engine.hot.expressions.expression import Expression, FunctionCall, in_heat_notation, is_static
from engine.hot.expressions.masking import MASK, contains_mask
from engine.hot.functions.cost_budget import CostBudget, resolution_budget
from engine.hot.schema.constraints import as_json, find_violation, remedy_for, remedy_of
from engine.hot.schema.parameters import InvalidValue, ParameterKind, convert, parse_number
from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema, has_hidden
from engine.hot.schema.value_schema import HIDDEN_VIOLATION
from engine.words import Json


def check_properties(
    schema: TypeSchema,
    properties: Mapping[str, Expression],
    place: str,
    findings: Findings,
    budget: CostBudget | None = None,
) -> dict[str, Expression]:
    """Check all known values; return the properties with known values converted.

    place: of the map, such as `resources.a.properties`. A null counts as not given. budget: cost
    budget shared with other checks; None: a new one.
    """
    if schema.any_property:
        return dict(properties)
    if schema.renames:
        properties = _rename(schema.properties, properties, place, findings)
    return _check_fields(
        schema.properties, properties, place, findings, budget or resolution_budget()
    )


def check_update_policy(
    schema: TypeSchema,
    policy: Mapping[str, Expression],
    place: str,
    findings: Findings,
    budget: CostBudget,
) -> dict[str, Expression]:
    """Check an `update_policy` in the same way as properties."""
    return _check_fields(schema.update_policy, policy, place, findings, budget)


def use_current_names(schema: TypeSchema, properties: Expression) -> Expression:
    """Return the properties with former names replaced; faults are ignored."""
    if not schema.renames or not isinstance(properties, dict):
        return properties
    return _rename(schema.properties, properties, "", Findings())


def _rename(
    fields: Mapping[str, Property], given: Mapping[str, Expression], place: str, findings: Findings
) -> dict[str, Expression]:
    former = {old: name for name, one in fields.items() for old in one.former_names}
    renamed: dict[str, Expression] = {}
    for old, value in given.items():
        name = former.get(old, old)
        if name != old and name in given:
            reason = f"Property {old} is the former name of {name}; both are given"
            findings.add(place, reason, f"Leave {old} out.")
        elif (one := fields.get(name)) is not None:
            renamed[name] = _rename_inside(one, value, f"{place}.{old}", findings)
        else:
            renamed[name] = value
    return renamed


def _rename_inside(one: Property, value: Expression, place: str, findings: Findings) -> Expression:
    if one.fields is not None and type(value) is dict:
        return _rename(one.fields, value, place, findings)
    if one.items is not None and type(value) is list:
        return [
            _rename_inside(one.items, item, f"{place}[{index}]", findings)
            for index, item in enumerate(value)
        ]
    return value


def check_resolved(
    schema: TypeSchema, properties: Mapping[str, Json], place: str, findings: Findings
) -> dict[str, Json]:
    """Check resolved properties before an operation. Defaults are not filled in."""
    return check_properties(schema, properties, place, findings)


def check_parts(
    schema: TypeSchema, properties: Mapping[str, Json], place: str, findings: Findings
) -> dict[str, Json]:
    """As `check_resolved`, for those properties whose values are known; others are missing."""
    if schema.any_property:
        return dict(properties)
    properties = use_current_names(schema, properties)
    fields = {name: one for name, one in schema.properties.items() if name in properties}
    return _check_fields(fields, properties, place, findings, resolution_budget())


def fill_defaults(schema: TypeSchema, properties: Mapping[str, Json]) -> dict[str, Json]:
    """Return the properties with the schema's defaults for missing ones, also inside maps."""
    return _fill(schema.properties, properties)


def mask_hidden(schema: TypeSchema, properties: Expression) -> Expression:
    """Return the properties with values of hidden properties masked. A call is masked as a whole if
    its value may contain one."""
    if isinstance(properties, FunctionCall):
        return MASK if schema.hides else properties
    return _mask(schema.properties, properties)


def mask_as_map(masked: Expression, properties: Expression) -> Expression:
    """Return masked properties in the shape of `properties`: if the whole map was masked as one
    text, a map with a mask for each property.
    """
    if isinstance(masked, dict | FunctionCall) or not isinstance(properties, Mapping):
        return masked
    return dict.fromkeys(properties, MASK)


#: (reason, remedy) for a public property with a value computed from a secret.
PUBLIC_SECRET = (
    "must not be computed from a secret: readers can see it",
    "Use a value that is not secret.",
)


def public_secrets(
    schema: TypeSchema, properties: Mapping[str, Expression], shown: Expression
) -> list[str]:
    """Return the names of public properties whose values contain a secret. shown: the properties
    with secrets masked.
    """
    if not isinstance(shown, Mapping):
        return []
    return [
        name
        for name, one in schema.properties.items()
        if one.public and properties.get(name) and contains_mask(shown.get(name))
    ]


def _check_fields(
    fields: Mapping[str, Property],
    given: Mapping[str, Expression],
    place: str,
    findings: Findings,
    budget: CostBudget,
) -> dict[str, Expression]:
    checked: dict[str, Expression] = {}
    for name, value in given.items():
        one = fields.get(name)
        if one is None:
            known = one_of("", list(fields), "Properties")
            remedy = Quoting(one_of(name, list(fields), "Properties"), known)
            reason = Quoting(f"Unknown Property {name}", "Unknown Property")
            findings.add(place, reason, remedy, at=f"{place}.{name}")
        elif one.obsolete:
            unused = f'The property "{name}" has no effect any more.'
            findings.warn(f"{place}.{name}", unused, "Remove it.", "NoEffect")
        elif type(value) is str and one.kind is Kind.STRING and not one.constraints:
            checked[name] = value
        else:
            checked[name] = _check(one, value, f"{place}.{name}", findings, budget)
    for name, one in fields.items():
        if one.required and name not in given:
            findings.add(place, public(f"Property {name} not assigned"), public(f'Add "{name}".'))
    return checked


def _check(
    one: Property, value: Expression, place: str, findings: Findings, budget: CostBudget
) -> Expression:
    if type(value) is FunctionCall:
        return value
    if value is None:
        if one.default is not None or not one.required:
            return None
        value = EMPTY_VALUES[one.kind]
    try:
        known = _coerce(one, value)
    except InvalidValue as bad:
        reason = bad.safe if one.hidden else Quoting(str(bad), bad.safe)
        remedy = public(bad.remedy or KIND_REMEDIES[one.kind])
        heat_reason = "" if one.hidden else bad.heat_reason
        findings.add(place, reason, remedy, heat_reason=heat_reason)
        return value
    if type(known) is dict and one.fields is not None:
        known = _check_fields(one.fields, known, place, findings, budget)
    elif type(known) is list and one.items is not None:
        known = [
            _check(one.items, item, f"{place}[{index}]", findings, budget)
            for index, item in enumerate(known)
        ]
    for rule in one.constraints:
        if violation := _find_violation(one, rule, known, budget):
            remedy = public(remedy_of(rule)) if one.hidden else remedy_for(rule, known)
            findings.add(place, violation, remedy)
    return known


def _coerce(one: Property, value: Json) -> Json:
    """Return the value converted to the property's kind. Raises InvalidValue."""
    if one.accepts_text and one.kind is Kind.LIST and isinstance(value, str):
        return convert(ParameterKind.LIST, value)
    if one.accepts_text and one.kind is Kind.MAP and isinstance(value, str | list):
        return value
    return COERCIONS[one.kind](value)


def _find_violation(
    one: Property, rule: Constraint, value: Expression, budget: CostBudget
) -> str | None:
    """Check one constraint. Length constraints apply to the list with unknown items, schemas to
    values that are wholly known, others only to known items.
    """
    if rule.kind == "schema":
        return _find_schema_violation(one, rule, value, budget)
    if rule.kind != "length" and isinstance(value, list):
        value = [item for item in value if not isinstance(item, FunctionCall)]
    violation = find_violation(rule, value, budget)
    if violation and one.hidden:
        return rule.description or f"its hidden value breaks a constraint of {rule.kind}"
    return violation


def _find_schema_violation(
    one: Property, rule: Constraint, value: Expression, budget: CostBudget
) -> str | None:
    """Check the schema of a parameter of a nested template. The value may be its JSON text."""
    if not is_static(value):
        return None
    try:
        known = convert(ParameterKind.JSON, value)
    except InvalidValue as bad:
        return bad.safe if one.hidden else Quoting(str(bad), bad.safe)
    violation = find_violation(rule, known, budget)
    return HIDDEN_VIOLATION if violation and one.hidden else violation


def _fill(fields: Mapping[str, Property], given: Mapping[str, Json]) -> dict[str, Json]:
    whole = dict(given)
    for name, one in fields.items():
        value = whole.get(name)
        if value is None:
            if one.default is not None:
                whole[name] = one.default
        elif one.fields is not None or one.items is not None:
            whole[name] = _fill_inside(one, value)
    return whole


def _fill_inside(one: Property, value: Json) -> Json:
    if one.fields is not None and isinstance(value, dict):
        return _fill(one.fields, value)
    if one.items is not None and isinstance(value, list):
        return [_fill_inside(one.items, item) for item in value]
    return value


def _mask(fields: Mapping[str, Property], given: Expression) -> Expression:
    if not isinstance(given, dict):
        return given
    return {
        name: _mask_property(fields[name], value) if name in fields else value
        for name, value in given.items()
    }


def _mask_property(one: Property, value: Expression) -> Expression:
    if value is None:
        return None
    if one.hidden or (isinstance(value, FunctionCall) and has_hidden({"": one})):
        return MASK
    if one.items is not None and isinstance(value, list):
        return [_mask_property(one.items, item) for item in value]
    return _mask(one.fields, value) if one.fields is not None else value


# -- kinds ----------------------------------------------------------------------------------------

KIND_REMEDIES: Mapping[Kind, str] = {
    Kind.STRING: "Write a string.",
    Kind.INTEGER: "Write an integer, such as 5.",
    Kind.NUMBER: "Write a number, such as 2.5.",
    Kind.BOOLEAN: "Write true or false.",
    Kind.LIST: "Write a list, such as [a, b].",
    Kind.MAP: "Write a map, such as {a: 1}.",
    Kind.ANY: "",
}
EMPTY_VALUES: Mapping[Kind, Json] = {
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
    raise InvalidValue(f"Value must be a string; got {_display(value)}", "Value must be a string")


def _to_integer(value: Json) -> Json:
    safe = "Value is not an integer"
    if not isinstance(value, str | int | float):
        raise InvalidValue(f"Value '{_display(value)}' is not an integer", safe)
    try:
        number = int(value)
    except ValueError:
        raise InvalidValue(f"Value '{value}' is not an integer", safe) from None
    return int(parse_number(str(number)))


def _to_number(value: Json) -> Json:
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return parse_number(value)
    raise InvalidValue(f"{_display(as_json(value))} is not a number", "Value is not a number")


def _to_boolean(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        raise InvalidValue(
            f'"{_display(value)}" is not a valid boolean', "Value is not a valid boolean"
        )
    return word == "true"


def _to_list(value: Json) -> Json:
    if isinstance(value, list):
        return value
    raise InvalidValue(f'"{_display(value)}" is not a list', "Value is not a list")


def _to_map(value: Json) -> Json:
    if isinstance(value, dict):
        return value
    raise InvalidValue(f'"{_display(value)}" is not a map', "Value is not a map")


def _display(value: Json) -> str:
    """Return a value for a message, as Heat quotes it."""
    return beginning_of(in_heat_notation(value))


COERCIONS: Mapping[Kind, Callable[[Json], Json]] = {
    Kind.STRING: _to_string,
    Kind.INTEGER: _to_integer,
    Kind.NUMBER: _to_number,
    Kind.BOOLEAN: _to_boolean,
    Kind.LIST: _to_list,
    Kind.MAP: _to_map,
    Kind.ANY: lambda value: value,
}
