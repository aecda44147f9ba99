"""Parameters that every stack has, by the names that the version of its template gives them."""

from collections.abc import Mapping
from urllib.parse import quote

from engine.errors import Findings
from engine.hot.parameters import BadValue, ParameterKind, ParameterSchema, check_value
from engine.hot.schema import Constraint
from engine.hot.spelling import HOT
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


def pseudo_values(version: str, *, project: str, stack_id: str, stack_name: str) -> dict[str, str]:
    """Return the values by name. version: a date."""
    if VERSIONS[version].spelling is HOT:
        return {
            "OS::stack_id": stack_id,
            "OS::project_id": project,
            "OS::stack_name": stack_name,
        }
    return {
        "AWS::StackId": f"arn:openstack:heat::{quote(project, '')}:stacks/{stack_name}/{stack_id}",
        "AWS::StackName": stack_name,
        "AWS::Region": REGION,
    }


def with_defaults(
    pseudo: Mapping[str, str], defaults: Mapping[str, Json], findings: Findings
) -> dict[str, str]:
    """Put in what an environment's ``parameter_defaults`` says instead."""
    values = dict(pseudo)
    for name in pseudo:
        if (given := defaults.get(name)) is None:
            continue
        schema = ParameterSchema(name, ParameterKind.STRING, constraints=RULES.get(name, ()))
        try:
            values[name] = check_value(schema, given)
        except BadValue as bad:
            findings.add("", f"Parameter '{name}' is invalid: {bad}")
    return values
