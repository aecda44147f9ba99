"""Reads the `Parameters` section of a CFN template to the same schemas as HOT."""

from collections.abc import Callable, Mapping

from engine.errors import Findings, nearest, one_of
from engine.hot.functions.cost_budget import CostBudget
from engine.hot.language.versions import Version
from engine.hot.schema.parameters import ParameterKind, ParameterSchema
from engine.hot.schema.type_schema import Constraint
from engine.hot.template.hot_parameters import (
    APPLICABLE_KINDS,
    READERS,
    InvalidConstraint,
    check_default,
    check_pattern,
    read_valid,
    text_of,
)
from engine.words import Json

KINDS: Mapping[str, ParameterKind] = {
    "String": ParameterKind.STRING,
    "Number": ParameterKind.NUMBER,
    "CommaDelimitedList": ParameterKind.LIST,
    "Json": ParameterKind.JSON,
    "Boolean": ParameterKind.BOOLEAN,
}
#: Prefixes of types that only AWS supports, with the nearest type here, for messages.
AWS_TYPES: Mapping[str, str] = {"List<": "CommaDelimitedList", "AWS::": "String"}
BOUNDS: Mapping[str, tuple[str, str]] = {
    "range": ("MinValue", "MaxValue"),
    "length": ("MinLength", "MaxLength"),
}
RULES: Mapping[str, str] = {
    "allowed_values": "AllowedValues",
    "allowed_pattern": "AllowedPattern",
}
KEYS = (
    "Type", "Default", "NoEcho", "AllowedValues", "AllowedPattern", "MaxLength", "MinLength",
    "MaxValue", "MinValue", "Description", "ConstraintDescription", "Label",
)  # fmt: skip


def read_cfn_parameters(
    section: Mapping[str, Json], version: Version, findings: Findings
) -> dict[str, ParameterSchema]:
    """Return the schemas of all valid parameters; faults are added to the findings."""
    budget = CostBudget()
    return read_valid(section, findings, lambda name, body: _read(name, body, findings, budget))


def _read(name: str, body: Json, findings: Findings, budget: CostBudget) -> ParameterSchema | None:
    place = f"Parameters.{name}"

    def fault(reason: str, remedy: str, at: str = "") -> None:
        findings.add(place + at, reason, remedy, "InvalidSchemaError")

    if not isinstance(body, dict):
        fault(f"Invalid parameter ({name}), expected a mapping", "Write {Type: String}.")
        return None
    for key in body:
        if key not in KEYS:
            fault(f"Invalid key '{key}' for parameter ({name})", one_of(key, KEYS, "Keys"))
    written = body.get("Type")
    if not isinstance(written, str) or written not in KINDS:
        missing = f"Missing parameter type for parameter: {name}"
        reason = missing if written is None else f"Invalid type ({written})"
        fault(reason, _suggest_type(str(written)), ".Type")
        return None
    kind = KINDS[written]
    schema = ParameterSchema(
        name=name,
        kind=kind,
        default=body.get("Default"),
        label=text_of(body, "Label", fault),
        description=text_of(body, "Description", fault),
        hidden=str(body.get("NoEcho", "")).lower() == "true",
        constraints=_constraints(body, kind, budget, fault),
    )
    check_default(schema, budget, fault, ".Default")
    return schema


def _suggest_type(written: str) -> str:
    for begin, kind in AWS_TYPES.items():
        if written.startswith(begin):
            return f'Use "{kind}".'
    return nearest(written, [*KINDS]) or f"One of {', '.join(KINDS)}."


def _constraints(
    body: Mapping[str, Json], kind: ParameterKind, budget: CostBudget, fault: Callable[..., None]
) -> tuple[Constraint, ...]:
    rules: list[tuple[str, str, Json]] = []
    for name, (min_key, max_key) in BOUNDS.items():
        if min_key in body or max_key in body:
            first = min_key if min_key in body else max_key
            rules.append((name, first, {"min": body.get(min_key), "max": body.get(max_key)}))
    rules += [(name, key, body[key]) for name, key in RULES.items() if key in body]
    read: list[Constraint] = []
    for name, key, rule in rules:
        if kind.value not in APPLICABLE_KINDS[name]:
            fault(
                f"{key} constraint invalid for {body['Type']}",
                "Remove it, or use another Type.",
                at=f".{key}",
            )
            continue
        try:
            description = text_of(body, "ConstraintDescription", fault)
            read.append(check_pattern(READERS[name](rule, kind, description), budget))
        except InvalidConstraint as wrong:
            reason = str(wrong).replace(name, key) if name in RULES else str(wrong)
            fault(reason, wrong.remedy, f".{key}")
    return tuple(read)
