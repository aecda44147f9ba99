"""OS::Heat::SoftwareDeploymentGroup and its variants: one deployment for each server."""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Grouping, Kind, Property, TypeSchema, updatable
from engine.types.contract import Call, Child, Outcome, ReconcileNested
from engine.types.groups.group import (
    Group,
    Policy,
    batch_properties,
    exact_size,
    member_attributes,
    policy_of,
)
from engine.types.groups.group_steps import (
    GroupStep,
    MemberChange,
    Progress,
    preview_members,
    run_steps,
)
from engine.types.groups.member_changes import change_all
from engine.types.groups.member_template import Body, CurrentMembers, sample, split_member_place
from engine.types.groups.step_plans import BATCH, MEMBERS
from engine.types.nested_observation import AllowedSize
from engine.types.software.agent_protocol import STATUS_CODE, STDERR, STDOUT
from engine.types.software.schema import PROPERTIES, STRUCTURED, check_transport
from engine.words import Json, Point

#: Attributes of the group, with those of its members.
GROUP_ATTRIBUTES = {
    "deploy_stdouts": STDOUT,
    "deploy_stderrs": STDERR,
    "deploy_status_codes": STATUS_CODE,
}
SERVERS = updatable(Kind.MAP, "IDs of servers, by member name.", required=True)


def schema_of(name: str, properties: Mapping[str, Property], members: str) -> TypeSchema:
    """The schema of a group. members: the type of its members."""
    shared = {key: one for key, one in properties.items() if key != "server"}
    return TypeSchema(
        name,
        description=f"One {members} for each server.",
        properties={"servers": SERVERS, **shared},
        attributes={
            key: Attribute(Kind.MAP, f"{one} of each member, by member name.")
            for key, one in GROUP_ATTRIBUTES.items()
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
            lambda properties: _sample(properties, members),
            lambda properties: _size(properties),
            lambda place: _property_place(place),
        ),
    )


class DeploymentGroup(Group):
    def __init__(
        self,
        name: str,
        properties: Mapping[str, Property],
        members: str,
        transports: Collection[str],
    ) -> None:
        super().__init__()
        self._transports = transports
        self._members = members
        self.body_properties = ["servers", *properties]
        self.schema = schema_of(name, properties, members)

    def create(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._run(call, "batch_create", "")

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return self._run(call, "rolling_update", Point.PRE_BATCH)

    def _run(self, call: Call, which: str, ask: str) -> Outcome | Awaitable[Outcome]:
        policy = policy_of(call.update_policy.get(which))
        plan = _Plan(deployments(call.properties, self._members), policy, ask, call.has_secrets)
        return run_steps(call, plan, lambda child: self.done(call, child))

    def preview_members(self, call: Call) -> ReconcileNested | None:
        if not isinstance(call.properties.get("servers") or {}, dict):
            return None
        bodies = deployments(call.properties, self._members)
        return preview_members(call, _Plan(bodies, None, "", call.has_secrets), len(bodies))

    def allowed_size(self, properties: Mapping[str, Json]) -> AllowedSize | None:
        return exact_size(_size(properties))

    def attributes(self, call: Call, child: Child) -> Mapping[str, Json]:
        """Each attribute of the members is an attribute of the group: a map by member name."""
        names = {name for member in child.members for name in member.attributes}
        shown = {MEMBER_ATTRIBUTES.get(name, name): name for name in sorted(names)}
        together = {
            group: {member.name: member.attributes.get(name) for member in child.members}
            for group, name in shown.items()
        }
        return {**together, **member_attributes(child.members, {})}

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_transport(properties, place, findings, self._transports)


def deployment_groups(transports: Collection[str]) -> list[DeploymentGroup]:
    """The groups, with their former names. transports: of other services that can be used."""
    single, structured = "OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment"
    groups = (
        ("OS::Heat::SoftwareDeploymentGroup", PROPERTIES, single),
        ("OS::Heat::SoftwareDeployments", PROPERTIES, single),
        ("OS::Heat::StructuredDeploymentGroup", STRUCTURED, structured),
        ("OS::Heat::StructuredDeployments", STRUCTURED, structured),
    )
    return [DeploymentGroup(*one, transports) for one in groups]


MEMBER_ATTRIBUTES = {one: group for group, one in GROUP_ATTRIBUTES.items()}


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
    rest = split_member_place(place)[1]
    name = rest.removeprefix(".properties.")
    if rest.startswith("<"):  # inside the template of the member
        return f"servers{rest}"
    return "servers" if name == rest or name.startswith("server") else name


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

    def compute_records(self, current: CurrentMembers) -> Mapping[str, Json]:
        return {}

    def step(
        self, current: CurrentMembers, at: Progress, names: Sequence[str] | None
    ) -> GroupStep | None:
        change = change_all(current, [*self.bodies], self.bodies.__getitem__)
        if not change.any:
            return None
        if self.policy is None:
            return GroupStep(MEMBERS, change)
        pending = [*change.created, *change.changed]
        batch = [*(pending[: self.policy.max_changes] if names is None else names)]
        bodies = {
            name: body if name not in pending or name in batch else current.bodies[name]
            for name, body in self.bodies.items()
            if name not in pending or name in batch or name in current.bodies
        }
        step = MemberChange(
            bodies,
            [name for name in change.created if name in batch],
            [name for name in change.changed if name in batch],
            change.removed,
            change.changed,
        )
        return GroupStep(BATCH, step, self.ask if step.changed else "", self.policy.pause)
