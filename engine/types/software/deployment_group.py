"""OS::Heat::SoftwareDeploymentGroup and its variants: one deployment for each server."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Grouping, Kind, Property, TypeSchema
from engine.types.contract import Call, Child, Outcome, ReconcileNested
from engine.types.groups.batches import Policy
from engine.types.groups.group import Group, batch_properties, member_attributes, policy_of
from engine.types.groups.group_steps import GroupStep, MemberChange, Progress, run_steps
from engine.types.groups.member_changes import all_at_once
from engine.types.groups.member_template import (
    Body,
    CurrentMembers,
    build_template,
    property_place,
    sample,
)
from engine.types.groups.step_plans import BATCH, MEMBERS
from engine.types.software.deployment_schema import PROPERTIES, STRUCTURED, check_transport
from engine.types.software.deployment_signals import STATUS_CODE, STDERR, STDOUT
from engine.words import Json, Point

#: Attributes of the group, with those of its members.
TOGETHER = {
    "deploy_stdouts": STDOUT,
    "deploy_stderrs": STDERR,
    "deploy_status_codes": STATUS_CODE,
}
SERVERS = Property(Kind.MAP, "IDs of servers, by member name.", required=True, update_allowed=True)


def schema_of(name: str, properties: Mapping[str, Property], members: str) -> TypeSchema:
    """The schema of a group. members: the type of its members."""
    shared = {key: one for key, one in properties.items() if key != "server"}
    return TypeSchema(
        name,
        description=f"One {members} for each server.",
        properties={"servers": SERVERS, **shared},
        attributes={
            key: Attribute(Kind.MAP, f"{one} of each member, by member name.")
            for key, one in TOGETHER.items()
        },
        any_attribute=True,
        update_policy={
            "rolling_update": Property(
                Kind.MAP, fields=batch_properties("change", in_service=False)
            ),
            "batch_create": Property(Kind.MAP, fields=batch_properties("create", in_service=False)),
        },
        steps=(Point.PRE_BATCH,),
        grouping=Grouping(
            lambda given: _sample(given, members),
            lambda given: _size(given),
            lambda place: _property_place(place),
        ),
    )


class DeploymentGroup(Group):
    def __init__(self, name: str, properties: Mapping[str, Property], members: str) -> None:
        super().__init__()
        self._members = members
        self.schema = schema_of(name, properties, members)

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._run(call, "batch_create", "")

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._run(call, "rolling_update", Point.PRE_BATCH)

    def _run(self, call: Call, which: str, ask: str) -> Outcome | Awaitable[Outcome]:
        policy = policy_of(call.update_policy.get(which))
        plan = _Plan(deployments(call.properties, self._members), policy, ask, call.has_secrets)
        return run_steps(call, plan, lambda child: self.done(call, child))

    def attributes(self, call: Call, child: Child) -> Mapping[str, Json]:
        """Each attribute of the members is an attribute of the group: a map by member name."""
        names = {name for member in child.members for name in member.attributes}
        shown = {TOGETHER_OF.get(name, name): name for name in sorted(names)}
        together = {
            group: {member.name: member.attributes.get(name) for member in child.members}
            for group, name in shown.items()
        }
        return {**together, **member_attributes(child.members, {})}

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_transport(properties, place, findings)


def deployment_groups() -> list[DeploymentGroup]:
    """The groups, with their former names."""
    single, structured = "OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment"
    return [
        DeploymentGroup("OS::Heat::SoftwareDeploymentGroup", PROPERTIES, single),
        DeploymentGroup("OS::Heat::SoftwareDeployments", PROPERTIES, single),
        DeploymentGroup("OS::Heat::StructuredDeploymentGroup", STRUCTURED, structured),
        DeploymentGroup("OS::Heat::StructuredDeployments", STRUCTURED, structured),
    ]


TOGETHER_OF = {one: group for group, one in TOGETHER.items()}


def deployments(properties: Mapping[str, Json], members: str) -> dict[str, Body]:
    """The definitions of the members, by name."""
    shared = {
        name: value for name, value in properties.items() if name != "servers" and value is not None
    }
    servers = properties.get("servers") or {}
    return {
        name: {"type": members, "properties": {"server": server, **shared}}
        for name, server in servers.items()
    }


def _property_place(place: str) -> str:
    """The place of a member's finding in the properties that all members share."""
    name = property_place(place, "").removeprefix(".properties.")
    return "servers" if name.startswith((".", "server")) else name


def _size(properties: Mapping[str, Json]) -> int | None:
    servers = properties.get("servers")
    return len(servers) if isinstance(servers, dict) else None


def _sample(
    properties: Mapping[str, Json], members: str
) -> tuple[Mapping[str, Json], Mapping[str, Json]] | None:
    """A sample of one member: members differ only in their server."""
    if not isinstance(properties.get("servers"), dict):
        return None
    return sample(dict(list(deployments(properties, members).items())[:1]))


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plan of a group whose members have the names in `servers`. policy: None: all members
    change at once. ask: the hook point at which an answer can choose members, or ""."""

    bodies: Mapping[str, Body]
    policy: Policy | None
    ask: str
    has_secrets: bool

    def kept(self, there: CurrentMembers) -> Mapping[str, Json]:
        return {}

    def goal(
        self, change: MemberChange, there: CurrentMembers, kept: Mapping[str, Json]
    ) -> ReconcileNested:
        return build_template(change.bodies, kept, has_secrets=self.has_secrets)

    def step(
        self, there: CurrentMembers, at: Progress, names: Sequence[str] | None
    ) -> GroupStep | None:
        change = all_at_once(there, [*self.bodies], self.bodies.__getitem__)
        if not change.any:
            return None
        if self.policy is None:
            return GroupStep(MEMBERS, change)
        pending = [*change.made, *change.altered]
        batch = [*(pending[: self.policy.most] if names is None else names)]
        bodies = {
            name: body if name not in pending or name in batch else there.bodies[name]
            for name, body in self.bodies.items()
            if name not in pending or name in batch or name in there.bodies
        }
        step = MemberChange(
            bodies,
            [name for name in change.made if name in batch],
            [name for name in change.altered if name in batch],
            change.gone,
            change.altered,
        )
        return GroupStep(BATCH, step, self.ask if step.altered else "", self.policy.pause)
