"""Reads the `parameters` and `parameter_groups` sections of a HOT template. Faults have Heat's code
InvalidSchemaError.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from engine.errors import Findings, beginning_of, nearest, one_of
from engine.hot.functions.cost_budget import BudgetExceeded, CostBudget
from engine.hot.functions.function import quote_value
from engine.hot.language.versions import EXTENDED_SINCE, Version
from engine.hot.patterns.pattern import InvalidPattern, read_pattern
from engine.hot.schema.parameters import (
    PSEUDO_PARAMETERS,
    InvalidValue,
    ParameterKind,
    ParameterSchema,
    check_value,
    convert,
)
from engine.hot.schema.type_schema import Constraint
from engine.hot.schema.value_schema import InvalidSchema, check_schema
from engine.words import Json

KINDS = [kind.value for kind in ParameterKind]
KEYS = ("type", "description", "label", "default", "hidden", "immutable", "constraints", "tags")
KNOWN_KEYS = (*KEYS, "schema")
#: The first versions with the key `tags` and with the constraint `modulo`.
TAGS_SINCE, MODULO_SINCE = "2018-03-02", "2017-02-24"

STRING_KINDS, NUMBER_KINDS = frozenset({"string"}), frozenset({"number"})
APPLICABLE_KINDS: Mapping[str, frozenset[str]] = {
    "length": frozenset({"string", "comma_delimited_list", "json"}),
    "range": NUMBER_KINDS,
    "modulo": NUMBER_KINDS,
    "allowed_values": frozenset({"string", "number", "boolean", "comma_delimited_list"}),
    "allowed_pattern": STRING_KINDS,
    "custom_constraint": frozenset({"string", "number", "boolean", "comma_delimited_list"}),
}


#: Heat's names of the constraints, for its messages.
CLASSES: Mapping[str, str] = {
    "length": "Length", "range": "Range", "modulo": "Modulo", "allowed_values": "AllowedValues",
    "allowed_pattern": "AllowedPattern", "custom_constraint": "CustomConstraint",
}  # fmt: skip


NO_CONSTRAINT = "No constraint expressed"
#: The order in which Heat looks for the constraint of an item; it does not see another one.
HEAT_ORDER = (
    "modulo", "range", "length", "allowed_values", "allowed_pattern", "custom_constraint",
)  # fmt: skip


class InvalidConstraint(Exception):
    """A fault of one constraint. sentence: see `Finding`."""

    def __init__(self, reason: str, remedy: str, sentence: str = "") -> None:
        super().__init__(reason)
        self.remedy, self.sentence = remedy, sentence


def read_parameters(
    section: Mapping[str, Json], version: Version, findings: Findings
) -> dict[str, ParameterSchema]:
    """Return the schemas of all valid parameters; faults are added to the findings."""
    budget = CostBudget()
    return read_valid(
        section, findings, lambda name, body: _read(name, body, version, findings, budget)
    )


def read_valid(
    section: Mapping[str, Json],
    findings: Findings,
    read: Callable[[str, Json], ParameterSchema | None],
) -> dict[str, ParameterSchema]:
    """Read each parameter and return those without findings."""
    found: dict[str, ParameterSchema] = {}
    for name, body in section.items():
        before = len(findings.all)
        schema = read(name, body)
        if schema is not None and len(findings.all) == before:
            found[name] = schema
    return found


def _read(
    name: str, body: Json, version: Version, findings: Findings, budget: CostBudget
) -> ParameterSchema | None:
    place = f"parameters.{name}"

    def fault(reason: str, remedy: str, at: str = "", key: str = "", sentence: str = "") -> None:
        """at: the place below the parameter. key: that the text has it at, if not there. sentence:
        see `Finding`.
        """
        position = f"{place}.{key}" if key else None
        findings.add(
            place + at, reason, remedy, "InvalidSchemaError", at=position, sentence=sentence
        )

    if name in (*PSEUDO_PARAMETERS, "OS::region"):
        absent = not isinstance(body, dict) or body.get("default") is None
        fault(
            f"The name {name} belongs to a pseudo parameter.",
            "Choose another name.",
            sentence=f"The Parameter ({name}) was not provided." if absent else "",
        )
        return None
    if not isinstance(body, dict):
        fault(f"Invalid parameter ({name}), expected a mapping", "Write a map with a type.")
        return None
    for key in body:
        if key not in KNOWN_KEYS or (key == "tags" and not version.parameter_tags):
            known = KNOWN_KEYS if version.extended else KEYS
            remedy = one_of(key, known, "Keys")
            if key in KNOWN_KEYS:
                remedy = f"Use heat_template_version {TAGS_SINCE} or later."
            fault(f"Invalid key '{key}' for parameter ({name})", remedy, key=key)
    if "schema" in body and not version.extended:
        reason = f'"schema" of parameter {name} has no effect.'
        remedy = f"Remove it, or use heat_template_version {EXTENDED_SINCE}."
        findings.warn(f"{place}.schema", reason, remedy, "NoEffect")
    kind = body.get("type")
    if kind not in KINDS:
        missing = f"Missing parameter type for parameter: {name}"
        reason = missing if kind is None else f"Invalid type ({kind})"
        remedy = nearest(str(kind), KINDS) or f"One of: {', '.join(KINDS)}."
        fault(reason, remedy, key="" if kind is None else "type")
        return None
    schema = ParameterSchema(
        name=name,
        kind=ParameterKind(kind),
        default=body.get("default"),
        label=text_of(body, "label", fault),
        description=text_of(body, "description", fault),
        hidden=_boolean(body, "hidden", fault),
        immutable=_boolean(body, "immutable", fault),
        constraints=(
            *_constraints(
                name, body.get("constraints"), ParameterKind(kind), version, budget, fault
            ),
            *(_schema(body.get("schema"), kind, budget, fault) if version.extended else ()),
        ),
        tags=_tags(name, body.get("tags"), fault),
    )
    check_default(schema, budget, fault, ".default")
    return schema


def check_default(
    schema: ParameterSchema, budget: CostBudget, fault: Callable[..., None], at: str
) -> None:
    """Check a default against the constraints, except custom constraints: as in Heat, these apply
    to values only.
    """
    if schema.default is None:
        return
    rules = tuple(rule for rule in schema.constraints if rule.kind != "custom_constraint")
    plain = ParameterSchema(schema.name, schema.kind, hidden=schema.hidden, constraints=rules)
    try:
        check_value(plain, schema.default, budget)
    except InvalidValue as bad:
        text = "" if schema.hidden else f" {_default_text(schema.default)}"
        reason = f"Parameter '{schema.name}' is invalid: Invalid default{text} ({bad})"
        fault(reason, bad.remedy, at=at)


def _default_text(default: Json) -> str:
    """Return a default as Heat writes it, but JSON in place of Python's words."""
    return beginning_of(default) if isinstance(default, str) else quote_value(default)


def text_of(body: Mapping[str, Json], key: str, fault: Callable[..., None]) -> str:
    """Return a scalar as text, "" if there is none."""
    value = body.get(key)
    if isinstance(value, dict | list):
        fault("This must be text.", "Write it in quotes.", at=f".{key}")
        return ""
    return "" if value is None else str(value)


def _boolean(body: Mapping[str, Json], key: str, fault: Callable[..., None]) -> bool:
    value = body.get(key)
    if value is None:
        return False
    try:
        return bool(convert(ParameterKind.BOOLEAN, value))
    except InvalidValue as bad:
        fault(str(bad), bad.remedy, at=f".{key}")
        return False


def _tags(name: str, value: Json, fault: Callable[..., None]) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        fault(f"Tags property should be a list for parameter: {name}", "Write a list.", at=".tags")
        return ()
    return tuple(value)


def _constraints(
    name: str,
    value: Json,
    kind: ParameterKind,
    version: Version,
    budget: CostBudget,
    fault: Callable[..., None],
) -> tuple[Constraint, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        reason = f"Invalid parameter constraints for parameter {name}, expected a list"
        fault(reason, "Write a list of maps.", at=".constraints")
        return ()
    read: list[Constraint] = []
    for index, one in enumerate(value):
        try:
            read.append(check_pattern(_constraint(name, one, kind, version), budget))
        except InvalidConstraint as wrong:
            fault(str(wrong), wrong.remedy, at=f".constraints[{index}]", sentence=wrong.sentence)
    return tuple(read)


SCHEMA_REMEDY = "Write a JSON schema; see json-schema.org."


def _schema(
    schema: Json, kind: str, budget: CostBudget, fault: Callable[..., None]
) -> tuple[Constraint, ...]:
    """Return the constraint for the key `schema` of a parameter, if it has one."""
    if schema is None:
        return ()
    if kind != ParameterKind.JSON:
        remedy = "Use the type json, or constraints."
        fault(f"A parameter of type {kind} cannot have a schema.", remedy, at=".schema")
        return ()
    try:
        check_schema(schema, budget)
    except InvalidSchema as wrong:
        fault(str(wrong), wrong.remedy or SCHEMA_REMEDY, at=f".schema{wrong.path}")
        return ()
    except BudgetExceeded as much:
        fault(str(much), SCHEMA_REMEDY, at=".schema")
        return ()
    return (Constraint("schema", schema=schema),)


def check_pattern(constraint: Constraint, budget: CostBudget) -> Constraint:
    """Return the constraint; spend the cost of its pattern. Raises InvalidConstraint for an invalid
    one.
    """
    try:
        read_pattern(constraint.pattern, budget)
    except (InvalidPattern, BudgetExceeded) as wrong:
        raise InvalidConstraint(str(wrong), "Correct the regular expression.") from None
    return constraint


def _constraint(parameter: str, one: Json, kind: ParameterKind, version: Version) -> Constraint:
    if not isinstance(one, dict):
        raise InvalidConstraint(
            "Invalid parameter constraints, expected a mapping", "Write CONSTRAINT: VALUE."
        )
    rules = {key: value for key, value in one.items() if key != "description"}
    for key in rules:
        if key not in READERS or (key == "modulo" and not version.modulo):
            near = one_of(key, [*READERS], "Constraints")
            since = f"Use heat_template_version {MODULO_SINCE} or later."
            raise InvalidConstraint(
                f"Invalid key '{key}' for parameter constraints",
                since if key in READERS else near,
                NO_CONSTRAINT if key in READERS and len(rules) == 1 else "",
            )
    if not rules:
        raise InvalidConstraint(NO_CONSTRAINT, f"One of {', '.join(READERS)}.")
    if len(rules) > 1:
        raise InvalidConstraint(
            "One constraint in each item of the list.",
            "Make a list item of each.",
            _inapplicable(parameter, next(name for name in HEAT_ORDER if name in rules), kind),
        )
    ((name, rule),) = rules.items()
    if reason := _inapplicable(parameter, name, kind):
        raise InvalidConstraint(
            reason,
            f"Remove it, or use another type; {name} is for {_one_of_kinds(name)}.",
        )
    description = one.get("description")
    return READERS[name](rule, kind, "" if description is None else str(description))


def _inapplicable(parameter: str, constraint: str, kind: ParameterKind) -> str:
    """Return the reason if the constraint is not for parameters of this kind; otherwise ""."""
    if kind.value in APPLICABLE_KINDS[constraint]:
        return ""
    reason = f"{CLASSES[constraint]} constraint invalid for {kind.value}"
    return f"Parameter '{parameter}' is invalid: {reason}"


def _one_of_kinds(name: str) -> str:
    return " and ".join(sorted(APPLICABLE_KINDS[name]))


def _read_bounds(name: str, rule: Json, whole: bool) -> Mapping[str, int | float | None]:
    remedy = "Write a map with min, max or both."
    if not isinstance(rule, dict):
        raise InvalidConstraint(f"Invalid {name} constraint, expected a mapping", remedy)
    if unknown := [key for key in rule if key not in ("min", "max")]:
        raise InvalidConstraint(f"Invalid key '{unknown[0]}' for {name} constraint", remedy)
    if not rule:
        raise InvalidConstraint(
            f"A {name} constraint must have a min value and/or a max value specified.",
            remedy,
        )
    bounds = {key: _read_limit(name, value, whole) for key, value in rule.items()}
    if all(bound is None for bound in bounds.values()):
        raise InvalidConstraint(
            f"A {name} constraint must have a min value and/or a max value specified.",
            "Write a number for min, max or both.",
        )
    return bounds


def _read_limit(name: str, value: Json, whole: bool) -> int | float | None:
    if value is None:
        return None
    try:
        number = convert(ParameterKind.NUMBER, value)
    except InvalidValue:
        raise InvalidConstraint(
            f"min and max of {name} must be numeric", "Write numbers without quotes."
        ) from None
    if whole and not isinstance(number, int):
        raise InvalidConstraint(f"min and max of {name} must be whole numbers", "Write integers.")
    return number  # type: ignore[no-any-return]


def _length(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    bounds = _read_bounds("length", rule, whole=True)
    return Constraint("length", bounds.get("min"), bounds.get("max"), description=description)


def _range(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    bounds = _read_bounds("range", rule, whole=False)
    return Constraint("range", bounds.get("min"), bounds.get("max"), description=description)


def _modulo(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    if not isinstance(rule, dict) or rule.keys() != {"step", "offset"}:
        raise InvalidConstraint(
            "A modulo constraint must have a step value and an offset value specified.",
            "Write {step: 2, offset: 0}.",
        )
    step, offset = (_read_limit("modulo", rule[key], whole=True) for key in ("step", "offset"))
    if step is None or offset is None:
        raise InvalidConstraint("step and offset must be numeric", "Write {step: 2, offset: 0}.")
    if step == 0:
        raise InvalidConstraint(
            "step cannot be 0.", "Write a step such as 2, or remove the constraint."
        )
    if abs(offset) >= abs(step):
        raise InvalidConstraint(
            "offset must be smaller (by absolute value) than step.",
            "Use a larger step or a smaller offset.",
        )
    if step * offset < 0:
        raise InvalidConstraint(
            "step and offset must be both positive or both negative.",
            "Write both with the same sign.",
        )
    return Constraint("modulo", step=step, offset=offset, description=description)


def _allowed_values(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    if not isinstance(rule, list):
        raise InvalidConstraint("AllowedValues must be a list", "Write a list of values.")
    item_kind = ParameterKind.STRING if kind is ParameterKind.LIST else kind
    try:
        allowed = tuple(convert(item_kind, one) for one in rule)
    except InvalidValue as bad:
        raise InvalidConstraint(
            f"allowed_values has a value of another type: {bad}", bad.remedy
        ) from None
    return Constraint("allowed_values", allowed=allowed, description=description)


def _allowed_pattern(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    if not isinstance(rule, str):
        raise InvalidConstraint("AllowedPattern must be a string", "Write it in quotes.")
    return Constraint("allowed_pattern", pattern=rule, description=description)


def _custom(rule: Json, kind: ParameterKind, description: str) -> Constraint:
    if not isinstance(rule, str):
        raise InvalidConstraint(
            "custom_constraint must be a name", "Write a name such as net_cidr."
        )
    return Constraint("custom_constraint", name=rule, description=description)


READERS: Mapping[str, Callable[[Json, ParameterKind, str], Constraint]] = {
    "length": _length,
    "range": _range,
    "modulo": _modulo,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
}


GROUP_REMEDY: Final = "Write {label: TEXT, parameters: [NAME, ...]} for each group."


def read_groups(
    groups: Json, known: Collection[str], findings: Findings
) -> tuple[Mapping[str, Json], ...]:
    """Return the parameter groups as written, for clients that display parameters. known: names of
    all parameters.
    """
    if groups is None:
        return ()

    def fault(label: str, reason: str, item: str, remedy: str = GROUP_REMEDY) -> None:
        """label: by which Heat names the group. item: the index of the group."""
        reason = f"Parameter Groups error: parameter_groups{label}: {reason}"
        findings.add("", reason, remedy, at=f"parameter_groups{item}")

    if not isinstance(groups, list):
        fault("", "The parameter_groups should be a list.", "")
        return ()
    seen: set[str] = set()
    for number, group in enumerate(groups):
        at = f"[{number}]"
        names = group.get("parameters") if isinstance(group, dict) else None
        label = f".{group.get('label') or ''}" if isinstance(group, dict) else ""
        if names is None:
            fault(label, "The parameters must be provided for each parameter group.", at)
            continue
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            fault(label, "The parameters of parameter group should be a list.", at)
            continue
        for name in names:
            if name in seen:
                reason = f"The {name} parameter must be assigned to one parameter group only."
                fault(label, reason, at)
            if name not in known:
                reason = f"The grouped parameter {name} does not reference a valid parameter."
                fault(label, reason, at, one_of(name, [*known], "Parameters"))
            seen.add(name)
    return tuple(groups)
