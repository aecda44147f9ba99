"""OS::Nova::KeyPair: an SSH key pair of a user.

Nova no longer generates keys: without `public_key`, Headgate makes the pair and keeps the private
key as a secret attribute. A key pair has no ID but its name: the progress records that there was
none of this name before, so that a repeated create takes only its own.
"""

from collections.abc import Collection, Mapping

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine.errors import Findings
from engine.types.contract import Call, Done, Failed, Outcome
from engine.types.custom_constraints import ValidationContext
from engine.types.live_object import LiveObject
from engine.types.observation import PRESENT
from engine.types.openstack.cloud import Session, object_in, segment
from engine.types.openstack.cloud_operation import CloudType, proceed, run_guarded
from engine.types.openstack.live_values import (
    LiveProperties,
    live_object,
    missing_object,
    unreadable,
)
from engine.types.openstack.lookups import USERS
from engine.types.openstack.nova.schema import KEY_PAIR
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import COMPUTE
from engine.words import Json


class KeyPair(CloudType):
    template_ids = True
    schema = KEY_PAIR

    async def create(self, call: Call) -> Outcome:
        sent = "public" in (call.progress or {})
        return await run_guarded(
            call, lambda: self._create(call), str(call.properties["name"]) if sent else None
        )

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if "public_key" not in properties and properties.get("type") == "x509":
            reason = "is missing: Headgate makes SSH keys only"
            findings.add(f"{place}.public_key", reason, "Set it to the certificate.")

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        session = self._cloud.session(context.credential)
        found = await find_key_pair(session, physical_id, "")
        return None if found is not None else f"there is no key pair {physical_id}"

    async def read_live(self, call: Call, imported: Collection[str]) -> LiveObject:
        session, name = self._cloud.session(call.credential), str(call.physical_id)
        try:
            user = await _user_id(session, call.properties)
            found = await find_key_pair(session, name, user)
        except CloudError as error:
            raise unreadable("key pair", error) from None
        if found is None:
            raise missing_object("key pair", name)
        values = {key: found.get(key) for key in ("name", "public_key", "type")}
        return live_object(self.schema, name, LiveProperties(values), call, lambda _: PRESENT)

    async def _create(self, call: Call) -> Outcome:
        session, progress = self._cloud.session(call.credential), dict(call.progress or {})
        name, user = str(call.properties["name"]), await _user_id(session, call.properties)
        if not progress:
            if await find_key_pair(session, name, user) is not None:
                reason = f'there is a key pair "{name}" already: use another name'
                return Failed(reason, public_reason="there is a key pair of this name already")
            given = call.properties.get("public_key")
            return proceed(call, {"public": given, "private": ""} if given else new_pair(name))
        pair: dict[str, Json] = {"name": name, "public_key": progress["public"]}
        pair |= {
            "type": call.properties.get("type") or "ssh",
            **({"user_id": user} if user else {}),
        }
        try:
            doing = "create the key pair"
            await session.request(COMPUTE, "POST", "/os-keypairs", doing, {"keypair": pair})
        except CloudError as error:
            found = await find_key_pair(session, name, user) if error.status == 409 else None
            if found is None or found.get("public_key") != progress["public"]:
                raise
        private = {"private_key": progress["private"]} if progress["private"] else {}
        return Done(name, {"public_key": progress["public"], **private}, {"user": user})

    async def _delete(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return Done(None)
        session = self._cloud.session(call.credential)
        user = call.data.get("user")
        query = {"user_id": str(user)} if user else None
        path = f"/os-keypairs/{segment(call.physical_id)}"
        await session.delete(COMPUTE, path, "delete the key pair", query)
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        session = self._cloud.session(call.credential)
        user = str(call.data.get("user") or "")
        found = await find_key_pair(session, call.physical_id or "", user)
        if found is None:
            reason = f'there is no key pair "{call.physical_id}"'
            return Failed(reason, None, call.data, public_reason="the key pair does not exist")
        private = {name: one for name, one in call.attributes.items() if name == "private_key"}
        attributes = {"show": dict(found), "public_key": found.get("public_key"), **private}
        return Done(call.physical_id, attributes, call.data)


async def find_key_pair(session: Session, name: str, user_id: str) -> Mapping[str, Json] | None:
    """A key pair by name. user_id: "" for the user of the session. Raises CloudError."""
    query = {"user_id": user_id} if user_id else None
    path, doing = f"/os-keypairs/{segment(name)}", "read the key pair"
    try:
        document = await session.request(COMPUTE, "GET", path, doing, None, query)
    except CloudError as error:
        if error.is_missing:
            return None
        raise
    return dict(object_in(COMPUTE, doing, document, "keypair"))


async def _user_id(session: Session, properties: Mapping[str, Json]) -> str:
    user = properties.get("user")
    return await USERS.verify(session, str(user)) if user else ""


def new_pair(name: str) -> dict[str, Json]:
    """A new pair in the formats of OpenSSH. name: becomes the comment of the public key."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    comment = "".join(one if one.isalnum() or one in "-_.@" else "-" for one in name)
    return {"public": f"{public.decode()} {comment}", "private": private.decode()}
