"""Values of pseudo parameters, by the names of the template's dialect."""

from collections.abc import Mapping
from urllib.parse import quote

from engine.errors import Findings
from engine.hot.language.dialect import HOT
from engine.hot.language.versions import VERSIONS
from engine.hot.schema.parameters import InvalidValue, ParameterKind, ParameterSchema, check_value
from engine.hot.schema.type_schema import Constraint
from engine.hot.template.template import Template
from engine.words import Json

#: Default of `AWS::Region` in Heat. Templates accept only these regions; parameter_defaults of an
#: environment can select another.
REGION = "ap-southeast-1"
REGIONS = (
    "us-east-1", "us-west-1", "us-west-2", "sa-east-1", "eu-west-1", REGION, "ap-northeast-1",
)  # fmt: skip
RULES: Mapping[str, tuple[Constraint, ...]] = {
    "AWS::Region": (Constraint("allowed_values", allowed=REGIONS),)
}


def pseudo_values(
    template: Template,
    known: Mapping[str, str],
    defaults: Mapping[str, Json],
    findings: Findings,
) -> dict[str, str]:
    """Return the pseudo parameters by the names of the template's dialect, except those that the
    template declares itself.

    known: values by HOT names; parameters that depend on a missing one are omitted. defaults: the
    environment's parameter_defaults, which take precedence.
    """
    is_hot = VERSIONS[template.version].dialect is HOT
    values = dict(known) if is_hot else _as_cfn(known)
    for name in [*values]:
        if name in template.parameters:
            del values[name]
        elif (given := defaults.get(name)) is not None:
            values[name] = _check_region(name, given, findings)
    return values


def _as_cfn(known: Mapping[str, str]) -> dict[str, str]:
    values = {"AWS::Region": REGION}
    project, stack_id = known.get("OS::project_id"), known.get("OS::stack_id")
    if (name := known.get("OS::stack_name")) is not None:
        values["AWS::StackName"] = name
        if project is not None and stack_id is not None:
            arn = f"arn:openstack:heat::{quote(project, '')}:stacks/{name}/{stack_id}"
            values["AWS::StackId"] = arn
    return values


def _check_region(name: str, given: Json, findings: Findings) -> str:
    schema = ParameterSchema(name, ParameterKind.STRING, constraints=RULES.get(name, ()))
    try:
        return str(check_value(schema, given))
    except InvalidValue as bad:
        findings.add("", f"Parameter '{name}' is invalid: {bad}")
        return ""
