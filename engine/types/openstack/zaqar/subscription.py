"""OS::Zaqar::Subscription: a subscriber of a queue.

A subscriber exists once in a queue, and Zaqar answers a create of one that exists as if it had
created it. So a create marks its own in the options.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final
from urllib.parse import quote

from engine.errors import Findings
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call
from engine.types.observation import Observation, admit_requests
from engine.types.openstack.cloud import Cloud, Session, id_of, object_in, segment
from engine.types.openstack.cloud_operation import observed_list
from engine.types.openstack.object_type import Mark, ObjectRow, RepairedType, existing_error
from engine.types.openstack.operation_marker import MARKER
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import IDENTITY, MESSAGING
from engine.types.openstack.zaqar.schema import SUBSCRIPTION
from engine.words import Json, ResourceId

SUBSCRIBER, OPTIONS, QUEUE_NAME = "subscriber", "options", "queue_name"
SCHEMES: Final = ("http", "https", "mailto", "trust+http", "trust+https")
#: The option with the trust that Zaqar has created for a subscriber with `trust+`.
TRUST: Final = "trust_id"
#: What Zaqar adds to the options of a subscription.
_ADDED: Final = (MARKER, TRUST)


class QueueSubscription(RepairedType):
    def __init__(self, cloud: Cloud, schema: TypeSchema = SUBSCRIPTION) -> None:
        row = ObjectRow(
            "subscription", MESSAGING, "/queues/{queue_name}/subscriptions", "", "subscriptions",
            cleared={OPTIONS: {}}, named=False, marked=False,
        )  # fmt: skip
        super().__init__(schema, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        subscriber, options = properties.get(SUBSCRIBER), properties.get(OPTIONS)
        if isinstance(subscriber, str):
            scheme, colon, _ = subscriber.partition(":")
            if not colon or scheme not in SCHEMES:
                reason = f"must begin with one of: {', '.join(f'{one}:' for one in SCHEMES)}"
                findings.add(f"{place}.{SUBSCRIBER}", reason, "Change it.")
        if isinstance(options, Mapping) and MARKER in options:
            reason = "is reserved: Headgate writes it to find the object of an interrupted create"
            findings.add(f"{place}.{OPTIONS}.{MARKER}", reason, "Remove it.")

    def mark(self, call: Call) -> Mark:
        return Mark({MARKER: str(call.operation_key)}, {})

    async def collection(
        self, properties: Mapping[str, Json], session: Session, project: str
    ) -> str:
        return f"/queues/{segment(properties[QUEUE_NAME])}/subscriptions"

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        return {OPTIONS: {}, **await super().fields_for_create(call, session)}

    async def post(
        self, call: Call, session: Session, path: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Zaqar answers with the ID of the subscription that has the subscriber."""
        mark, doing = fields[MARKER], "create the subscription"
        body = {name: one for name, one in fields.items() if name != MARKER}
        body[OPTIONS] = {**(body.get(OPTIONS) or {}), MARKER: mark}
        if _has_trust(body) and TRUST not in body[OPTIONS]:
            await self._refuse_existing(session, path, body[SUBSCRIBER])
        answer = await session.request(MESSAGING, "POST", path, doing, body)
        object_id = id_of(MESSAGING, object_in(MESSAGING, doing, answer, ""), "subscription_id")
        found = await self.get(session, path, object_id)
        if found.get(MARKER) != mark:
            raise existing_error(self.row.what, object_id)
        return found

    async def _refuse_existing(self, session: Session, path: str, subscriber: Json) -> None:
        """Raises CloudError if the queue has the subscriber: Zaqar would first create a trust that
        then belongs to no subscription."""
        async for page in self._pages(session, path):
            for one in page:
                if one.get(SUBSCRIBER) == subscriber:
                    raise existing_error(self.row.what, str(one.get("id")))

    async def put(
        self, session: Session, path: str, object_id: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Send what differs: Zaqar refuses a subscriber that the subscription has already."""
        doing, location = "update the subscription", f"{path}/{segment(object_id)}"
        before = await self._read_all(session, path, object_id)
        known = before.get(OPTIONS) or {}
        wanted = dict(fields)
        if OPTIONS in wanted:
            added = _ADDED if _has_trust(before) else (MARKER,)
            kept = {name: known[name] for name in added if name in known}
            wanted[OPTIONS] = {**kept, **(wanted[OPTIONS] or {})}
        changed = {name: one for name, one in wanted.items() if before.get(name) != one}
        if changed:
            await session.send(MESSAGING, "PATCH", location, doing, changed)
        return await self.get(session, path, object_id)

    async def get(self, session: Session, path: str, object_id: str) -> Mapping[str, Json]:
        return _subscription(await self._read_all(session, path, object_id))

    async def _read_all(self, session: Session, path: str, object_id: str) -> Mapping[str, Json]:
        doing = "read the subscription"
        answer = await session.request(MESSAGING, "GET", f"{path}/{segment(object_id)}", doing)
        return object_in(MESSAGING, doing, answer, "")

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        async for page in self._pages(session, path):
            for one in page:
                if mark.is_on(one):
                    return one
        return None

    async def _pages(
        self, session: Session, path: str
    ) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        async for page in session.pages(MESSAGING, path, self.row.list_key):
            yield [_subscription(one) for one in page]

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        """Also the trust that Zaqar has created and keeps."""
        found = await self._read_all(session, path, object_id)
        await super().remove(call, session, path, object_id)
        given = (call.properties.get(OPTIONS) or {}).get(TRUST)
        trust = (found.get(OPTIONS) or {}).get(TRUST)
        if trust and trust != given and _has_trust(found):
            try:
                location = f"/OS-TRUST/trusts/{quote(str(trust), safe='')}"
                await session.delete(IDENTITY, location, "delete the trust of the subscription")
            except CloudError as error:
                if error.retry:
                    raise

    # ---- observation

    def observation_key(self, call: Call) -> str | None:
        known = call.physical_id is not None and bool(call.observation_credential)
        return self.schema.name if known else None

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        """One list for each queue."""
        session = self.cloud.owner_session(calls[0])
        found: dict[ResourceId, Observation] = {}
        by_queue: dict[str, list[Call]] = {}
        for call in calls:
            by_queue.setdefault(str(call.data.get("path")), []).append(call)
        missing = f"the {self.row.what} does not exist"
        count = await admit_requests(len(by_queue))
        for path, those in islice(by_queue.items(), count):
            pages = partial(self._pages, session, path)
            found |= await observed_list(pages, self.compare, missing).observe(those)
        return found

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str] | None:
        return [name for name in (SUBSCRIBER, "ttl", OPTIONS) if name in properties]


def _subscription(found: Mapping[str, Json]) -> Mapping[str, Json]:
    """With the options that are properties."""
    if OPTIONS not in found:
        return found
    options = found.get(OPTIONS)
    known = options if isinstance(options, Mapping) else {}
    own = {name: one for name, one in known.items() if name not in _ADDED}
    stable = {name: one for name, one in found.items() if name != "age"}
    return {**stable, OPTIONS: own, MARKER: known.get(MARKER)}


def _has_trust(found: Mapping[str, Json]) -> bool:
    """Whether Zaqar creates a trust for the subscriber. Another trust ID in the options is the
    user's own."""
    return str(found.get(SUBSCRIBER)).startswith("trust+")
