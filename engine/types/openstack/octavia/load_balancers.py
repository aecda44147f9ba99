"""A load balancer and what belongs to it: OS::Octavia::LoadBalancer, Listener, Pool, PoolMember,
HealthMonitor, L7Policy, L7Rule."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Outcome, Replace, ResourceType
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.keystone.lookups import PROJECTS
from engine.types.openstack.neutron.lookups import SUBNETS
from engine.types.openstack.neutron.neutron_type import describe, without_nulls
from engine.types.openstack.object_type import TAGS, Mark, ObjectRow
from engine.types.openstack.octavia import schema
from engine.types.openstack.octavia.lookups import (
    FLAVORS,
    L7_POLICIES,
    LISTENERS,
    LOAD_BALANCERS,
    POOLS,
)
from engine.types.openstack.octavia.octavia_type import ERROR, PENDING, OctaviaType
from engine.types.openstack.services import LOAD_BALANCER
from engine.words import Json

#: Objects in a message about what uses another one.
MAX_USERS: Final = 5
SESSION: Final = "session_persistence"


class LoadBalancerType(OctaviaType):
    async def _update(self, call: Call, session: Session) -> Outcome:
        if call.repeats_all and not call.progress:
            found = await self.find(session, self.row.path, str(call.physical_id))
            if found is None or self.status(found) == ERROR:
                return Replace()
        return await super()._update(call, session)

    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        query = {"loadbalancer_id": object_id}
        found = [
            describe(what, one)
            for what, lookup in (("listener", LISTENERS), ("pool", POOLS))
            for one in await session.list(LOAD_BALANCER, lookup.path, lookup.key, query)
        ]
        return found[:MAX_USERS]


class PoolType(OctaviaType):
    async def value_of(self, call: Call, session: Session, name: str, value: Json) -> Json:
        if name == SESSION:
            return without_nulls(value)
        return await super().value_of(call, session, name, value)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        persistence = properties.get(SESSION)
        if not isinstance(persistence, Mapping):
            return
        kind, cookie = persistence.get("type"), persistence.get("cookie_name")
        if kind == "SOURCE_IP" and cookie:
            reason = "SOURCE_IP has no cookie"
            findings.add(f"{place}.{SESSION}.cookie_name", reason, "Remove it.")

    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        found = await session.list(
            LOAD_BALANCER, L7_POLICIES.path, L7_POLICIES.key, {"redirect_pool_id": object_id}
        )
        return [describe("L7 policy", one) for one in found[:MAX_USERS]]


class PoolMemberType(OctaviaType):
    def is_field(self, name: str) -> bool:
        return name == TAGS or super().is_field(name)

    def is_observed(self, name: str) -> bool:
        return self.is_field(name)


class L7PolicyType(OctaviaType):
    async def value_of(self, call: Call, session: Session, name: str, value: Json) -> Json:
        if name == "position":
            return int(value)
        return await super().value_of(call, session, name, value)

    def is_observed(self, name: str) -> bool:
        """Other policies of the listener change the position."""
        return name != "position" and super().is_observed(name)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        belongs = {"redirect_pool": "REDIRECT_TO_POOL", "redirect_url": "REDIRECT_TO_URL"}
        action = properties.get("action")
        for name, needed in belongs.items():
            if action is not None and action != needed and properties.get(name) is not None:
                findings.add(f"{place}.{name}", f"action {action} has no {name}", "Remove it.")


class L7RuleType(OctaviaType):
    def mark(self, call: Call) -> Mark:
        tag = f"headgate:{call.operation_key}"
        return Mark({TAGS: [tag]}, {TAGS: tag})


def load_balancer_types(cloud: Cloud) -> list[ResourceType]:
    owner = {"tenant_id": "project_id"}
    balancer = {"loadbalancer": "loadbalancer_id"}

    def row(
        what: str,
        path: str,
        keys: tuple[str, str],
        fields: Mapping[str, str],
        **more: Json,
    ) -> ObjectRow:
        return ObjectRow(
            what, LOAD_BALANCER, f"/lbaas/{path}", *keys, fields=fields, busy=PENDING, **more
        )

    def type_of(kind: type[OctaviaType], of: TypeSchema, described: ObjectRow) -> OctaviaType:
        return kind(of, described, cloud)

    return [
        type_of(
            LoadBalancerType,
            schema.LOAD_BALANCER,
            row(
                "load balancer", "loadbalancers", ("loadbalancer", "loadbalancers"),
                owner | {"vip_subnet": "vip_subnet_id", "flavor": "flavor_id"},
                lookups={"vip_subnet": SUBNETS, "flavor": FLAVORS, "tenant_id": PROJECTS},
            ),
        ),
        type_of(
            OctaviaType,
            schema.LISTENER,
            row(
                "listener", "listeners", ("listener", "listeners"),
                owner | balancer | {"default_pool": "default_pool_id"},
                lookups={"loadbalancer": LOAD_BALANCERS, "default_pool": POOLS},
                cleared={"sni_container_refs": []},
            ),
        ),
        type_of(
            PoolType,
            schema.POOL,
            row(
                "pool", "pools", ("pool", "pools"), balancer | {"listener": "listener_id"},
                lookups={"loadbalancer": LOAD_BALANCERS, "listener": LISTENERS},
            ),
        ),
        type_of(
            PoolMemberType,
            schema.POOL_MEMBER,
            row(
                "member", "pools/{pool}/members", ("member", "members"), {"subnet": "subnet_id"},
                lookups={"pool": POOLS, "subnet": SUBNETS}, cleared={TAGS: []},
            ),
        ),
        type_of(
            OctaviaType,
            schema.HEALTH_MONITOR,
            row(
                "health monitor", "healthmonitors", ("healthmonitor", "healthmonitors"),
                owner | {"pool": "pool_id"}, lookups={"pool": POOLS},
            ),
        ),
        type_of(
            L7PolicyType,
            schema.L7_POLICY,
            row(
                "L7 policy", "l7policies", ("l7policy", "l7policies"),
                {"listener": "listener_id", "redirect_pool": "redirect_pool_id"},
                lookups={"listener": LISTENERS, "redirect_pool": POOLS},
            ),
        ),
        type_of(
            L7RuleType,
            schema.L7_RULE,
            row(
                "L7 rule", "l7policies/{l7policy}/rules", ("rule", "rules"), {},
                lookups={"l7policy": L7_POLICIES}, named=False, marked=False,
            ),
        ),
    ]  # fmt: skip
