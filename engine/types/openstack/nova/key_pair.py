"""OS::Nova::KeyPair: an SSH key pair of a user.

Nova no longer generates keys: without `public_key`, Headgate makes the pair and keeps the private
key as a secret attribute. A key pair has no ID but its name: the progress records that there was
none of this name before, so that a repeated create takes only its own.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine.errors import Findings
from engine.types.contract import Call, Done, Failed, Outcome
from engine.types.custom_constraints import ValidationContext
from engine.types.live_object import LiveObject
from engine.types.observation import Difference, Observation
from engine.types.observed_list import ObservedList
from engine.types.openstack.cloud import Session, object_in, segment
from engine.types.openstack.cloud_operation import (
    CloudType,
    observed_list,
    proceed,
    run_guarded,
    unknown_state,
)
from engine.types.openstack.live_values import (
    LiveProperties,
    live_object,
    missing_object,
    unreadable,
)
from engine.types.openstack.lookups import USERS
from engine.types.openstack.nova.schema import KEY_PAIR
from engine.types.openstack.service_errors import FORBIDDEN, CloudError
from engine.types.openstack.services import COMPUTE
from engine.words import Json

#: In the data: the ID of the user whom the key pair belongs to. Key pairs of 0.2.0 have it in the
#: attribute `show`, after a check.
_OWNER: Final = "owner"
_GONE: Final = "the key pair does not exist"
#: The properties whose differences are observed.
_OBSERVED: Final = ("public_key", "type")


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
        session = self._cloud.session(context)
        found = await find_key_pair(session, physical_id, "")
        return None if found is not None else f"there is no key pair {physical_id}"

    async def read_live(self, call: Call, imported: Collection[str]) -> LiveObject:
        session, name = self._cloud.session(call), str(call.physical_id)
        try:
            user = await _user_id(session, call.properties)
            found = await find_key_pair(session, name, user)
        except CloudError as error:
            raise unreadable("key pair", error) from None
        if found is None:
            raise missing_object("key pair", name)
        values = {key: found.get(key) for key in ("name", "public_key", "type")}

        def compare(properties: Mapping[str, Json]) -> Observation:
            return _compare(replace(call, properties=properties), found)

        return live_object(self.schema, name, LiveProperties(values), call, compare)

    async def _create(self, call: Call) -> Outcome:
        session, progress = self._cloud.session(call), dict(call.progress or {})
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
            body = {"keypair": pair}
            document = await session.request(COMPUTE, "POST", "/os-keypairs", doing, body)
            made: Json = document.get("keypair") if isinstance(document, Mapping) else None
        except CloudError as error:
            found = await find_key_pair(session, name, user) if error.status == 409 else None
            if found is None or found.get("public_key") != progress["public"]:
                raise
            made = found
        private = {"private_key": progress["private"]} if progress["private"] else {}
        data = {"user": user, _OWNER: made.get("user_id") if isinstance(made, Mapping) else None}
        return Done(name, {"public_key": progress["public"], **private}, data)

    async def _delete(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return Done(None)
        session = self._cloud.session(call)
        user = call.data.get("user")
        query = {"user_id": str(user)} if user else None
        path = f"/os-keypairs/{segment(call.physical_id)}"
        await session.delete(COMPUTE, path, "delete the key pair", query)
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        user = str(call.data.get("user") or "")
        found = await find_key_pair(session, call.physical_id or "", user)
        if found is None:
            reason = f'there is no key pair "{call.physical_id}"'
            return Failed(reason, None, call.data, public_reason="the key pair does not exist")
        private = {name: one for name, one in call.attributes.items() if name == "private_key"}
        attributes = {"show": dict(found), "public_key": found.get("public_key"), **private}
        return Done(call.physical_id, attributes, {**call.data, _OWNER: found.get("user_id")})

    # ---- observation

    def observation_key(self, call: Call) -> str | None:
        owner = _owner_of(call) if call.physical_id and self._cloud.has_observer(call) else ""
        return f"key pairs of {owner}" if owner else None

    def observation_endpoint(self, call: Call) -> str:
        return COMPUTE.name

    def observed_paths(self, properties: Mapping[str, Json]) -> Sequence[str]:
        return _OBSERVED

    def adopted_places(
        self, properties: Mapping[str, Json], path: str
    ) -> Sequence[tuple[str, ...]]:
        """A template without the key has a private key that does not fit an observed one."""
        return super().adopted_places(properties, path) if properties.get("public_key") else ()

    def observed_list(self, call: Call) -> ObservedList:
        """Always with the ID of the owner: without it, Nova lists those of the observer, and all
        others would look like missing ones. It refuses the ID to other users."""
        session, owner = self._cloud.observer_session(call), _owner_of(call)

        def unknown(error: CloudError) -> Observation:
            if error.status != FORBIDDEN:
                return unknown_state(error)
            reason = f"the key pair belongs to the user {owner}; the observer may not read it"
            public = "the key pair belongs to the user who created it; the observer may not read it"
            return Observation.unknown(f"{reason}: {error}", f"{public}: {error.public}")

        return observed_list(
            lambda: _pages(session, owner),
            _compare,
            _GONE,
            id_of=lambda one: str(one.get("name")),
            find=lambda one: find_key_pair(session, str(one.physical_id), owner),
            unknown=unknown,
        )


def _owner_of(call: Call) -> str:
    """The ID of the user whom a key pair belongs to; "" if it is not recorded."""
    shown = call.attributes.get("show")
    recorded = shown.get("user_id") if isinstance(shown, Mapping) else None
    return str(call.data.get(_OWNER) or recorded or "")


async def _pages(session: Session, owner: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
    query = {"user_id": owner}
    async for page in session.pages(COMPUTE, "/os-keypairs", "keypairs", query):
        yield [one["keypair"] for one in page if isinstance(one.get("keypair"), Mapping)]


def _compare(call: Call, pair: Mapping[str, Json]) -> Observation:
    given = call.properties.get("public_key") or call.attributes.get("public_key")
    pairs: dict[str, tuple[Json, Json]] = {
        "public_key": (_strip(given), _strip(pair.get("public_key"))),
        "type": (call.properties.get("type") or "ssh", pair.get("type")),
    }
    known = {path: one for path, one in pairs.items() if one[0] is not None}
    differences = [
        Difference(path, wanted, found)
        for path, (wanted, found) in known.items()
        if found is not None and wanted != found
    ]
    absent = [path for path, (_, found) in known.items() if found is None]
    return Observation.from_comparison("the key pair", differences, absent)


def _strip(value: Json) -> Json:
    return value.strip() if isinstance(value, str) else value


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
