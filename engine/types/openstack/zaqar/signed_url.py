"""OS::Zaqar::SignedQueueURL: a signature, of which Zaqar keeps nothing."""

from collections.abc import Mapping
from datetime import UTC, timedelta
from typing import Final
from urllib.parse import urlencode

from engine.errors import Findings
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.openstack.cloud import Cloud, object_in, segment
from engine.types.openstack.cloud_operation import run_guarded
from engine.types.openstack.services import MESSAGING
from engine.types.openstack.zaqar.queue_names import reason_against
from engine.types.openstack.zaqar.schema import SIGNED_URL
from engine.words import Json

#: What an answer has, which becomes attributes.
FIELDS: Final = ("signature", "expires", "paths", "methods", "project")


class SignedQueueUrl(ResourceType):
    schema = SIGNED_URL

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        queue = properties.get("queue")
        if isinstance(queue, str) and (reason := reason_against(queue)):
            findings.add(f"{place}.queue", f'"{queue}" is not valid: {reason}', "Change it.")

    async def create(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._create(call), None)

    async def _create(self, call: Call) -> Outcome:
        queue, doing = str(call.properties["queue"]), "sign a URL of the queue"
        body = {name: one for name in ("paths", "methods") if (one := call.properties.get(name))}
        if (lifetime := call.properties.get("ttl")) is not None:
            ends = call.now + timedelta(seconds=lifetime)
            body["expires"] = ends.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        session = self._cloud.session(call)
        path = f"/queues/{segment(queue)}/share"
        answer = await session.request(MESSAGING, "POST", path, doing, body)
        found = object_in(MESSAGING, doing, answer, "")
        known = {name: found.get(name) for name in FIELDS}
        query = {
            "signature": known["signature"],
            "expires": known["expires"],
            "paths": ",".join(map(str, known["paths"] or ())),
            "methods": ",".join(map(str, known["methods"] or ())),
            "project_id": known["project"],
            "queue_name": queue,
        }
        return Done(call.own_name, {**known, "query_str": urlencode(query), "show": known})

    def delete(self, call: Call) -> Outcome:
        """Zaqar cannot take a signature back: it ends by itself."""
        return Done(None)

    def check(self, call: Call) -> Outcome:
        return Done(call.physical_id, call.attributes, call.data)
