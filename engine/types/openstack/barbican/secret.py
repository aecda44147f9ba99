"""OS::Barbican::Secret: a secret, such as a key or a password."""

import asyncio
from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.types.contract import Call
from engine.types.observation import PRESENT, Observation, admit_requests
from engine.types.openstack.barbican.payloads import payload_of, read_payload, text_of
from engine.types.openstack.barbican.references import id_in
from engine.types.openstack.barbican.schema import BINARY, SECRET, TEXT
from engine.types.openstack.barbican.stored_type import BROKEN, StoredType
from engine.types.openstack.cloud import Session
from engine.types.openstack.cloud_operation import unknown_state
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import KEY_MANAGER
from engine.words import Json, ObservedState, ResourceId

#: The entry in the metadata of a secret with the operation that claimed it.
MARK: Final = "headgate_operation"
#: Secrets that one observation reads at the same time.
PARALLEL: Final = 8
#: The properties that an equal secret has in the same way.
_COMPARED: Final = ("secret_type", "algorithm", "bit_length", "mode")


class StoredSecret(StoredType):
    schema = SECRET
    what, path, key, reference_field = "secret", "/secrets", "secrets", "secret_ref"

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        media_type = properties.get("payload_content_type")
        encoding, payload = properties.get("payload_content_encoding"), properties.get("payload")
        if media_type == BINARY and encoding is None:
            reason = f"is missing: a payload of the type {BINARY} is written in Base64"
            findings.add(f"{place}.payload_content_encoding", reason, 'Set it to "base64".')
        if encoding is not None and media_type == TEXT:
            reason = f"is for payloads of the type {BINARY} only"
            remedy = f"Remove it, or set payload_content_type to {BINARY}."
            findings.add(f"{place}.payload_content_encoding", reason, remedy)
        if isinstance(payload, str):
            if not payload.strip():
                remedy = "Remove it, or set a value."
                findings.add(f"{place}.payload", "is empty", remedy)
            elif encoding is not None and not _is_base64(payload):
                remedy = "Encode it, or remove payload_content_encoding."
                findings.add(f"{place}.payload", "is not valid Base64", remedy)

    async def body(self, session: Session, call: Call, name: str) -> Mapping[str, Json]:
        given = {key: one for key, one in call.properties.items() if one is not None}
        media_type = {"payload_content_type": TEXT} if "payload" in given else {}
        return {**media_type, **given, "name": name}

    async def attributes_of(
        self, session: Session, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        return {
            "status": found.get("status"),
            "decrypted_payload": text_of(await read_payload(session, found)),
            "show": dict(found),
        }

    async def is_alike(
        self, session: Session, properties: Mapping[str, Json], found: Mapping[str, Json]
    ) -> bool:
        if any(found.get(name) != properties.get(name) for name in _COMPARED):
            return False
        return await read_payload(session, found) == payload_of(properties)

    async def claim(self, session: Session, object_id: str, operation: str) -> bool:
        path, doing = f"/secrets/{object_id}/metadata", "mark the secret"
        entry = {"key": MARK, "value": operation}
        try:
            await session.request(KEY_MANAGER, "POST", path, doing, entry)
        except CloudError as error:
            if error.is_missing:
                return False
            if error.status != CONFLICT:
                raise
        found = await session.find(KEY_MANAGER, path, "metadata", doing)
        return found is not None and found.get(MARK) == operation

    # ---- observation

    def observation_key(self, call: Call) -> str | None:
        known = call.physical_id is not None and self._cloud.has_reader
        return self.schema.name if known else None

    def observation_endpoint(self, call: Call) -> str:
        return KEY_MANAGER.name

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str]:
        """None: objects cannot change."""
        return ()

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        """Read each object: the lists of Barbican have those of the reader's own project only."""
        session, limit = self._cloud.reader_session(calls[0].region), asyncio.Semaphore(PARALLEL)

        async def observe_one(call: Call) -> Observation:
            async with limit:
                try:
                    found = await self._read(session, id_in(call.physical_id))
                except CloudError as error:
                    return unknown_state(error)
            if found is None:
                reason = f"the {self.what} does not exist"
                return Observation(ObservedState.MISSING, (), reason, reason)
            if found.get("status") == BROKEN:
                reason = f"the {self.what} has failed"
                return Observation(ObservedState.DEGRADED, (), reason, reason)
            return PRESENT

        now = calls[: await admit_requests(len(calls))]
        async with asyncio.TaskGroup() as group:
            tasks = {call.resource_id: group.create_task(observe_one(call)) for call in now}
        return {resource_id: task.result() for resource_id, task in tasks.items()}


def _is_base64(text: str) -> bool:
    try:
        b64decode("".join(text.split()), validate=True)
    except ValueError:
        return False
    return True
