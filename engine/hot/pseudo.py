"""Parameters that every stack has, by the names that the version of its template gives them."""

from collections.abc import Mapping
from urllib.parse import quote

from engine.errors import Findings
from engine.hot.parameters import BadValue, ParameterKind, ParameterSchema, check_value
from engine.hot.schema import Constraint
from engine.hot.spelling import HOT
from engine.hot.template import Template
from engine.hot.versions import VERSIONS
from engine.words import Json

#: Templates know regions of one cloud only, and this is the one they are told; an environment names
#: another in its ``parameter_defaults``.
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
    """Return the values by the names that the template knows, but for those that it names itself.

    known: by HOT's names; what hangs on one that is missing is left out. defaults: the
    environment's parameter_defaults, which win.
    """
    is_hot = VERSIONS[template.version].spelling is HOT
    values = dict(known) if is_hot else _as_cfn(known)
    for name in [*values]:
        if name in template.parameters:
            del values[name]
        elif (given := defaults.get(name)) is not None:
            values[name] = _checked(name, given, findings)
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


def _checked(name: str, given: Json, findings: Findings) -> str:
    schema = ParameterSchema(name, ParameterKind.STRING, constraints=RULES.get(name, ()))
    try:
        return str(check_value(schema, given))
    except BadValue as bad:
        findings.add("", f"Parameter '{name}' is invalid: {bad}")
        return ""
