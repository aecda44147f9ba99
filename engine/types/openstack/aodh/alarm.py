"""OS::Aodh::*: alarms, each with a rule of its own kind.

An alarm has a name derived from the stack, by which an interrupted create finds it.
"""

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Outcome
from engine.types.openstack.aodh.schema import (
    BY_METRICS,
    BY_RESOURCES,
    COMPOSITE,
    EVENT,
    MEMBER_HEALTH,
    PROMETHEUS,
    RESOURCES,
)
from engine.types.openstack.cloud import Cloud, Session, id_of, object_in, segment
from engine.types.openstack.object_type import NAME, Mark, ObjectRow, RepairedType, is_alike
from engine.types.openstack.octavia.lookups import POOLS
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import ALARM
from engine.words import Json

#: The schemas of the types, and the kinds of their rules.
ALARMS: Final = (
    (EVENT, "event"),
    (COMPOSITE, "composite"),
    (RESOURCES, "gnocchi_resources_threshold"),
    (BY_METRICS, "gnocchi_aggregation_by_metrics_threshold"),
    (BY_RESOURCES, "gnocchi_aggregation_by_resources_threshold"),
    (PROMETHEUS, "prometheus"),
)
#: The properties with actions, and those with queues for them.
ACTIONS: Final[Mapping[str, str]] = {
    "alarm_actions": "alarm_queues",
    "ok_actions": "ok_queues",
    "insufficient_data_actions": "insufficient_data_queues",
}
#: The fields of an alarm that properties of all types set.
_PLAIN: Final = ("description", "enabled", "repeat_actions", "severity", "time_constraints")
#: The beginning of the URL of an action that Aodh carries out with a trust.
_WITH_TRUST: Final = "trust+"
#: Aodh's text of an error 403 of Keystone.
_KEYSTONE_REFUSAL: Final = re.compile(
    r"not authorized to perform the requested action\b.*\(HTTP 403\)", re.DOTALL
)
COMPOSED, ENABLED, POOL = "composite_rule", "enabled", "pool"
#: When Aodh has evaluated the alarm.
EVALUATED_AT: Final = "evaluate_timestamp"


class Alarm(RepairedType):
    """kind: of the rule."""

    def __init__(self, schema: TypeSchema, kind: str, cloud: Cloud) -> None:
        row = ObjectRow("alarm", ALARM, "/alarms", "", "", marked=False)
        super().__init__(schema, row, cloud)
        self.kind = kind

    def mark(self, call: Call) -> Mark:
        query = {"q.field": NAME, "q.op": "eq", "q.value": call.own_name}
        return Mark({NAME: call.own_name}, query)

    def id_of(self, found: Mapping[str, Json]) -> str:
        return id_of(ALARM, found, "alarm_id")

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        return self.alarm_of(await self.properties_of(call, session))

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        return self.alarm_of(await self.properties_of(call, session)) if names else {}

    async def properties_of(self, call: Call, session: Session) -> Mapping[str, Json]:
        """The properties, with the IDs of the objects that they name."""
        return call.properties

    def alarm_of(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        """The alarm without its name."""
        given = {name: one for name, one in properties.items() if one is not None}
        rule_name = f"{self.kind}_rule"
        if self.kind == "composite":
            rule = {given[COMPOSED]["operator"]: given[COMPOSED]["rules"]}
        else:
            own = given.keys() - {*ACTIONS, *ACTIONS.values(), *_PLAIN}
            rule = {self.field_of(name): _without_null(given[name]) for name in sorted(own)}
        actions = {
            name: [*(given.get(name) or ()), *map(_queue_url, given.get(queues) or ())]
            for name, queues in ACTIONS.items()
        }
        plain: dict[str, Json] = {
            name: _without_null(given[name]) for name in _PLAIN if name in given
        }
        return {"type": self.kind, rule_name: rule, **actions, **plain}

    async def post(
        self, call: Call, session: Session, path: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        doing = "create the alarm"
        answer = await _write(session, "POST", path, doing, fields)
        return object_in(ALARM, doing, answer, "")

    async def put(
        self, session: Session, path: str, object_id: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Aodh replaces the whole alarm, except of its state. It never evaluates an alarm that has
        lost the time of its last evaluation."""
        found, doing = await self.get(session, path, object_id), "update the alarm"
        body = {"description": "", **fields, NAME: found.get(NAME)}
        if evaluated_at := found.get(EVALUATED_AT) or found.get("timestamp"):
            body[EVALUATED_AT] = evaluated_at
        location = f"{path}/{segment(object_id)}"
        answer = await _write(session, "PUT", location, doing, body)
        return object_in(ALARM, doing, answer, "")

    async def get(self, session: Session, path: str, object_id: str) -> Mapping[str, Json]:
        doing = "read the alarm"
        answer = await session.request(ALARM, "GET", f"{path}/{segment(object_id)}", doing)
        return object_in(ALARM, doing, answer, "")

    async def suspend(self, call: Call) -> Outcome:
        return await self.guard(call, self._enable(call, enabled=False))

    async def resume(self, call: Call) -> Outcome:
        return await self.guard(call, self._enable(call, enabled=True))

    async def _enable(self, call: Call, *, enabled: bool) -> Outcome:
        session = self.cloud.session(call)
        wanted = self.alarm_of(await self.properties_of(call, session))
        if not enabled:
            wanted[ENABLED] = False
        found = await self.put(session, self.row.path, str(call.physical_id), wanted)
        attributes = await self.attributes_of(session, found)
        return Done(call.physical_id, attributes, call.data)

    # ---- observation

    async def read_by_ids(
        self, session: Session, ids: Sequence[str]
    ) -> AsyncIterator[Mapping[str, Json]]:
        """Read each alarm: a list of all projects needs a filter that names them."""
        for object_id in ids:
            found = await self.find(session, self.row.path, object_id)
            if found is not None:
                yield found

    def is_observed(self, name: str) -> bool:
        return name in ("description", ENABLED, "repeat_actions", "severity")

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        return is_alike(desired, observed)


class MemberHealthAlarm(Alarm):
    """With the action ``trust+heat://``, Aodh marks the members of the group that are not healthy,
    and updates the stack, so that they are replaced."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(MEMBER_HEALTH, "loadbalancer_member_health", cloud)

    async def properties_of(self, call: Call, session: Session) -> Mapping[str, Json]:
        pool = await POOLS.find_id(session, str(call.properties[POOL]), call.project)
        return {**call.properties, POOL: pool}

    def field_of(self, name: str) -> str:
        return {POOL: "pool_id", "stack": "stack_id"}.get(name, name)


async def _write(
    session: Session, method: str, path: str, doing: str, alarm: Mapping[str, Json]
) -> Json:
    """Send an alarm. Aodh creates a trust for each action that needs one, and answers with 500 and
    Keystone's error if Keystone refuses it, which no other attempt changes."""
    try:
        return await session.request(ALARM, method, path, doing, alarm)
    except CloudError as error:
        given = [str(one) for name in ACTIONS for one in alarm.get(name) or ()]
        needs_trust = any(one.startswith(_WITH_TRUST) for one in given)
        if not needs_trust or error.status != 500 or not _KEYSTONE_REFUSAL.search(error.message):
            raise
        public = "Keystone refused the trust that Aodh creates for an action with trust+"
        remedy = (
            "A change that acts with a trust or an application credential cannot create others:"
            " see `trusts` in [auth.keystone]."
        )
        raise CloudError(f"{public}: {error.message}. {remedy}", public=public) from None


def _queue_url(queue: Json) -> str:
    """The action that sends a message to a queue, with a trust that Aodh creates."""
    return f"trust+zaqar://?{urlencode({'queue_name': queue})}"


def _without_null(value: Json) -> Json:
    if isinstance(value, list):
        return [_without_null(one) for one in value]
    if isinstance(value, Mapping):
        return {name: one for name, one in value.items() if one is not None}
    return value
