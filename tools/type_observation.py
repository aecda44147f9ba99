"""How resource types are observed, as the types themselves say: with a cloud that may read
everything, the key of `ResourceType.observation_key` shows whether one request observes several
resources."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from engine.types.contract import Call, ResourceType
from engine.words import ResourceId, StackId

BY_LIST = "by lists: one request for many resources"
ALONE = "with requests of its own for each resource"
BY_CHECK = "by its check, one for each resource"
NOT = "no"
#: Types with properties or settings that name what is read, and those with other requests.
BY_PROPERTIES = {
    "Headgate::Command": "by its command `check`, one run for each resource",
    "Headgate::HTTP": (
        "by its request `list`, one for many resources, or else by `check` or `read` for each"
    ),
    "OS::Keystone::GroupRoleAssignment": "with one request for each group",
    "OS::Keystone::UserRoleAssignment": "with one request for each user",
    "OS::Heat::Stack": (
        "with requests of its own for each resource, if the operator has configured a credential"
        " for its endpoint"
    ),
}
#: Types whose resources are observed by one call, with requests of its own for each.
EACH = ("OS::Aodh::", "OS::Barbican::")


class ObservingCloud:
    """A cloud with a credential that reads the objects of all projects."""

    has_reader = True

    def can_observe(self, call: Call) -> bool:
        return True

    def has_observer(self, call: Call) -> bool:
        return True


def observation_of(name: str, one: ResourceType) -> str:
    """How the resources of a type are observed."""
    if name in BY_PROPERTIES:
        return BY_PROPERTIES[name]
    keys = [_key(one, number) for number in (1, 2)]
    if keys[0] is None:
        return NOT
    kind = type(one)
    if (kind.observe, kind.observed_list) == (ResourceType.observe, ResourceType.observed_list):
        return BY_CHECK
    return ALONE if name.startswith(EACH) or keys[0] != keys[1] else BY_LIST


def _key(one: ResourceType, number: int) -> str | None:
    """The key of a resource of the type. A type in the form of AWS is observed as its other one."""
    other: Any = getattr(one, "other", one)
    call = Call(
        project="project",
        stack_id=StackId(UUID(int=0)),
        stack_name="stack",
        resource_id=ResourceId(UUID(int=number)),
        resource_name="name",
        operation_key=UUID(int=number),
        now=datetime(2026, 1, 1, tzinfo=UTC),
        properties={},
        physical_id=f"id/{number}",
        data={"owner": "user"},  # of key pairs
        observation_credential="credential",
    )
    key: str | None = other.observation_key(call)
    return key
