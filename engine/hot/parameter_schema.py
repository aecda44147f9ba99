"""Reading the ``parameters`` section of a template; every fault has Heat's InvalidSchemaError."""

from collections.abc import Callable, Mapping

from engine.errors import Findings, nearest, one_of
from engine.hot.effort import Effort, TooMuch
from engine.hot.parameters import (
    PSEUDO,
    BadValue,
    ParameterKind,
    ParameterSchema,
    check_value,
    convert,
)
from engine.hot.patterns import BadPattern, read_pattern
from engine.hot.schema import Constraint
from engine.hot.versions import Version
from engine.words import Json

KINDS = [kind.value for kind in ParameterKind]
KEYS = ("type", "description", "label", "default", "hidden", "immutable", "constraints", "tags")
KNOWN = (*KEYS, "schema")

TEXTS, NUMBERS = frozenset({"string"}), frozenset({"number"})
APPLIES: Mapping[str, frozenset[str]] = {
    "length": frozenset({"string", "comma_delimited_list", "json"}),
    "range": NUMBERS,
    "modulo": NUMBERS,
    "allowed_values": frozenset({"string", "number", "boolean", "comma_delimited_list"}),
    "allowed_pattern": TEXTS,
    "custom_constraint": frozenset({"string", "number", "boolean", "comma_delimited_list"}),
}


class Fault(Exception):
    """What is wrong with one constraint."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


def read_parameters(
    section: Mapping[str, Json], version: Version, findings: Findings
) -> dict[str, ParameterSchema]:
    """Return the schemas of all parameters that are sound."""
    effort = Effort()
    return sound(section, findings, lambda name, body: _read(name, body, version, findings, effort))


def sound(
    section: Mapping[str, Json],
    findings: Findings,
    read: Callable[[str, Json], ParameterSchema | None],
) -> dict[str, ParameterSchema]:
    """Read each, and return those of which no finding was made."""
    found: dict[str, ParameterSchema] = {}
    for name, body in section.items():
        before = len(findings.all)
        schema = read(name, body)
        if schema is not None and len(findings.all) == before:
            found[name] = schema
    return found


def _read(
    name: str, body: Json, version: Version, findings: Findings, effort: Effort
) -> ParameterSchema | None:
    place = f"parameters.{name}"

    def fault(reason: str, remedy: str = "", at: str = "") -> None:
        findings.add(place + at, reason, remedy, "InvalidSchemaError")

    if name in (*PSEUDO, "OS::region"):
        fault(f"The name {name} belongs to a pseudo parameter.", "Choose another name.")
        return None
    if not isinstance(body, dict):
        fault("A parameter must be a map with a type.")
        return None
    for key in body:
        if key not in KNOWN or (key == "tags" and not version.parameter_tags):
            fault(f"Invalid key '{key}' for parameter", one_of(key, KEYS, "Keys"))
    kind = body.get("type")
    if kind not in KINDS:
        said = "Missing parameter type" if kind is None else f'Invalid type "{kind}"'
        fault(f"{said} for parameter: {name}", nearest(str(kind), KINDS) or f"One of {KINDS}.")
        return None
    schema = ParameterSchema(
        name=name,
        kind=ParameterKind(kind),
        default=body.get("default"),
        label=text_of(body, "label", fault),
        description=text_of(body, "description", fault),
        hidden=_switch(body, "hidden", fault),
        immutable=_switch(body, "immutable", fault),
        constraints=_constraints(
            body.get("constraints"), ParameterKind(kind), version, effort, fault
        ),
        tags=_tags(body.get("tags"), fault),
    )
    check_default(schema, effort, fault, ".default")
    return schema


def check_default(
    schema: ParameterSchema, effort: Effort, fault: Callable[..., None], at: str
) -> None:
    """Custom constraints are not asked about defaults: they look at values only."""
    if schema.default is None:
        return
    rules = tuple(rule for rule in schema.constraints if rule.kind != "custom_constraint")
    plain = ParameterSchema(schema.name, schema.kind, hidden=schema.hidden, constraints=rules)
    try:
        check_value(plain, schema.default, effort)
    except BadValue as bad:
        fault(f"Invalid default: {bad}", at=at)


def text_of(body: Mapping[str, Json], key: str, fault: Callable[..., None]) -> str:
    """Return a scalar as text, "" when there is none."""
    value = body.get(key)
    if isinstance(value, dict | list):
        fault("This must be text.", at=f".{key}")
        return ""
    return "" if value is None else str(value)


def _switch(body: Mapping[str, Json], key: str, fault: Callable[..., None]) -> bool:
    value = body.get(key)
    if value is None:
        return False
    try:
        return bool(convert(ParameterKind.BOOLEAN, value))
    except BadValue as bad:
        fault(str(bad), at=f".{key}")
        return False


def _tags(value: Json, fault: Callable[..., None]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        fault("Tags must be a list of texts.", at=".tags")
        return ()
    return tuple(value)


def _constraints(
    value: Json, kind: ParameterKind, version: Version, effort: Effort, fault: Callable[..., None]
) -> tuple[Constraint, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        fault("Invalid parameter constraints, expected a list", at=".constraints")
        return ()
    read: list[Constraint] = []
    for index, one in enumerate(value):
        try:
            read.append(check_pattern(_constraint(one, kind, version), effort))
        except Fault as wrong:
            fault(str(wrong), wrong.remedy, at=f".constraints[{index}]")
    return tuple(read)


def check_pattern(constraint: Constraint, effort: Effort) -> Constraint:
    """Return the constraint; Fault when its pattern is none. What reading it costs is counted."""
    try:
        read_pattern(constraint.pattern, effort)
    except (BadPattern, TooMuch) as wrong:
        raise Fault(str(wrong)) from None
    return constraint


def _constraint(one: Json, kind: ParameterKind, version: Version) -> Constraint:
    if not isinstance(one, dict):
        raise Fault("Invalid parameter constraints, expected a mapping")
    rules = {key: value for key, value in one.items() if key != "description"}
    for key in rules:
        if key not in READERS or (key == "modulo" and not version.modulo):
            raise Fault(
                f"Invalid key '{key}' for parameter constraints",
                one_of(key, [*READERS], "Constraints"),
            )
    if not rules:
        raise Fault("No constraint expressed", f"One of {', '.join(READERS)}.")
    if len(rules) > 1:
        raise Fault("One constraint in each item of the list.", "Make a list item of each.")
    ((name, rule),) = rules.items()
    if kind.value not in APPLIES[name]:
        raise Fault(f"{name} constraint invalid for {kind.value}")
    description = one.get("description")
    return READERS[name](rule, kind, "" if description is None else str(description))


def _bounded(name: str, rule: Json, whole: bool) -> Mapping[str, int | float | None]:
    if not isinstance(rule, dict) or not rule or not rule.keys() <= {"min", "max"}:
        raise Fault(f"A {name} constraint must have a min value and/or a max value specified.")
    bounds = {key: _limit(name, value, whole) for key, value in rule.items()}
    if all(bound is None for bound in bounds.values()):
        raise Fault(f"A {name} constraint must have a min value and/or a max value specified.")
    return bounds


def _limit(name: str, value: Json, whole: bool) -> int | float | None:
    if value is None:
        return None
    try:
        number = convert(ParameterKind.NUMBER, value)
    except BadValue:
        raise Fault(f"min and max of {name} must be numeric") from None
    if whole and not isinstance(number, int):
        raise Fault(f"min and max of {name} must be whole numbers")
    return number  # type: ignore[no-any-return]


def _length(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    bounds = _bounded("length", rule, whole=True)
    return Constraint("length", bounds.get("min"), bounds.get("max"), description=description)


def _range(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    bounds = _bounded("range", rule, whole=False)
    return Constraint("range", bounds.get("min"), bounds.get("max"), description=description)


def _modulo(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    if not isinstance(rule, dict) or rule.keys() != {"step", "offset"}:
        raise Fault("A modulo constraint must have a step value and an offset value specified.")
    step, offset = (_limit("modulo", rule[key], whole=True) for key in ("step", "offset"))
    if step is None or offset is None:
        raise Fault("step and offset must be numeric")
    if step == 0:
        raise Fault("step cannot be 0.")
    if abs(offset) >= abs(step):
        raise Fault("offset must be smaller (by absolute value) than step.")
    if step * offset < 0:
        raise Fault("step and offset must be both positive or both negative.")
    return Constraint("modulo", step=step, offset=offset, description=description)


def _allowed_values(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    if not isinstance(rule, list):
        raise Fault("allowed_values must be a list")
    item_kind = ParameterKind.STRING if kind is ParameterKind.LIST else kind
    try:
        allowed = tuple(convert(item_kind, one) for one in rule)
    except BadValue as bad:
        raise Fault(f"allowed_values has a value of another type: {bad}") from None
    return Constraint("allowed_values", allowed=allowed, description=description)


def _allowed_pattern(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    if not isinstance(rule, str):
        raise Fault("allowed_pattern must be a string")
    return Constraint("allowed_pattern", pattern=rule, description=description)


def _custom(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    if not isinstance(rule, str):
        raise Fault("custom_constraint must be a name")
    return Constraint("custom_constraint", name=rule, description=description)


READERS: Mapping[str, Callable[[Json, ParameterKind, str], Constraint]] = {
    "length": _length,
    "range": _range,
    "modulo": _modulo,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
}
