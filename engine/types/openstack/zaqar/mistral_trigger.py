"""OS::Zaqar::MistralTrigger: a subscription that runs a workflow of Mistral for each message."""

from collections.abc import Collection, Mapping
from typing import Final

import orjson

from engine.errors import Findings
from engine.types.contract import Call
from engine.types.observation import Difference, Observation
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.mistral.external_resource import EXECUTIONS
from engine.types.openstack.mistral.lookups import WORKFLOWS
from engine.types.openstack.mistral.workflow import decode
from engine.types.openstack.object_type import is_alike
from engine.types.openstack.services import WORKFLOW
from engine.types.openstack.zaqar.schema import MISTRAL_TRIGGER
from engine.types.openstack.zaqar.subscription import OPTIONS, SUBSCRIBER, QueueSubscription
from engine.words import Json

#: What Zaqar replaces by the message.
MESSAGE: Final = "$zaqar_message$"
#: The option with the body of the request to Mistral.
BODY: Final = "post_data"
TTL: Final = "ttl"


class MistralTrigger(QueueSubscription):
    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud, MISTRAL_TRIGGER)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        """Nothing: the subscriber is no property."""

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        root = await session.endpoint(WORKFLOW, "find the executions of workflows")
        return {
            SUBSCRIBER: f"trust+{root}{EXECUTIONS}",
            TTL: call.properties[TTL],
            OPTIONS: await self._options(call, session),
        }

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        fields: dict[str, Json] = {TTL: call.properties[TTL]} if TTL in names else {}
        if set(names) - {TTL}:
            fields[OPTIONS] = await self._options(call, session)
        return fields

    async def _options(self, call: Call, session: Session) -> Mapping[str, Json]:
        workflow = await WORKFLOWS.find_id(session, str(call.properties["workflow_id"]))
        return {BODY: orjson.dumps(_request(workflow, call.properties)).decode()}

    # ---- observation

    def compare(self, call: Call, found: Mapping[str, Json]) -> Observation:
        body = decode((found.get(OPTIONS) or {}).get(BODY))
        seen = body if isinstance(body, Mapping) else {}
        wanted = _request(str(call.properties["workflow_id"]), call.properties)
        live = {**seen, TTL: found.get(TTL)}
        absent = [name for name in (OPTIONS, TTL) if name not in found]
        wanted = {} if OPTIONS in absent else wanted
        wanted |= {} if TTL in absent else {TTL: call.properties[TTL]}
        differences = [
            Difference(name, value, live.get(name))
            for name, value in wanted.items()
            if not is_alike(value, live.get(name))
        ]
        return Observation.from_comparison(f"the {self.row.what}", differences, absent)

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str] | None:
        return [TTL, "workflow_id", "params", "input"]


def _request(workflow: str, properties: Mapping[str, Json]) -> dict[str, Json]:
    params = properties.get("params") or {}
    environment = {**(params.get("env") or {}), "notification": MESSAGE}
    return {
        "workflow_id": workflow,
        "params": {**params, "env": environment},
        "input": properties.get("input") or {},
    }
