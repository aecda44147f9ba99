"""OS::Barbican::Order: has Barbican generate a secret, or a container with a pair of keys."""

from collections.abc import AsyncIterator, Mapping
from typing import Final

from engine.errors import Findings
from engine.types.contract import Call
from engine.types.openstack.barbican.payloads import read_payload_at
from engine.types.openstack.barbican.references import (
    CONTAINERS,
    id_in,
    mapping_in,
    secrets_in,
)
from engine.types.openstack.barbican.schema import ORDER
from engine.types.openstack.barbican.stored_type import OPERATION, Origin, StoredType
from engine.types.openstack.cloud import Session
from engine.types.openstack.services import KEY_MANAGER
from engine.words import Json

#: The entry in the data of an order with the operation that created it.
MARK: Final = "headgate_operation"
PASS_PHRASE: Final = "pass_phrase"  # noqa: S105 - the name of a property
_KEY_PROPERTIES: Final = (
    "name", "algorithm", "bit_length", "mode", "payload_content_type", "expiration",
)  # fmt: skip
#: The properties of each type of order, besides `type`.
PROPERTIES: Final[Mapping[str, tuple[str, ...]]] = {
    "key": _KEY_PROPERTIES,
    "asymmetric": (*_KEY_PROPERTIES, PASS_PHRASE),
    "certificate": (
        "name", "request_type", "subject_dn", "source_container_ref", "ca_id", "profile",
        "request_data",
    ),
}  # fmt: skip
#: The attributes that are payloads in the container of an order.
PAYLOADS: Final = ("public_key", "private_key", "certificate", "intermediates")


class Order(StoredType):
    """A delete leaves what the order has generated, as in Heat: data may be encrypted with it."""

    schema = ORDER
    what, path, key, reference_field = "order", "/orders", "orders", "order_ref"

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        kind = properties.get("type")
        allowed = PROPERTIES.get(str(kind))
        if allowed is None:
            return
        for name, value in properties.items():
            if name not in (*allowed, "type") and value is not None:
                reason = f'is not a property of an order of the type "{kind}"'
                findings.add(f"{place}.{name}", reason, f"It has {', '.join(allowed)}.")
        if kind != "certificate":
            for name in ("algorithm", "bit_length"):
                if properties.get(name) is None:
                    reason = f'is missing: an order of the type "{kind}" requires it'
                    findings.add(f"{place}.{name}", reason, "Set it.")
        elif properties.get("profile") is not None and properties.get("ca_id") is None:
            reason = "is missing: profile requires it"
            findings.add(f"{place}.ca_id", reason, "Set it, or remove profile.")

    async def body(self, session: Session, call: Call, name: str) -> Mapping[str, Json]:
        given = {
            key: one for key, one in call.properties.items() if one is not None and key != "type"
        }
        meta = {**given, MARK: str(call.operation_key)}
        return {"type": call.properties["type"], "meta": meta}

    async def attributes_of(
        self, session: Session, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        meta = {
            key: one
            for key, one in mapping_in(found, "meta").items()
            if key not in (MARK, PASS_PHRASE)
        }
        names = ("status", "order_ref", "secret_ref", "container_ref")
        return {
            **{name: found.get(name) for name in names},
            **await _payloads(session, found.get("container_ref")),
            "show": {**found, "meta": meta},
        }

    def shares_name(self, properties: Mapping[str, Json]) -> bool:
        return False

    async def _list_named(
        self, session: Session, origin: Origin
    ) -> AsyncIterator[Mapping[str, Json]]:
        """The order with the operation of a create."""
        async for page in session.pages(KEY_MANAGER, self.path, self.key):
            for one in page:
                if mapping_in(one, "meta").get(MARK) == origin[OPERATION]:
                    yield one

    async def is_alike(
        self, session: Session, properties: Mapping[str, Json], found: Mapping[str, Json]
    ) -> bool:
        return True

    async def claim(self, session: Session, object_id: str, operation: str) -> bool:
        return True


async def _payloads(session: Session, reference: Json) -> dict[str, Json]:
    """The payloads of the secrets in a container. reference: None if there is no container."""
    empty: dict[str, Json] = dict.fromkeys(PAYLOADS)
    if reference is None:
        return empty
    doing, path = "read the container of the order", f"{CONTAINERS.path}/{id_in(reference)}"
    found = await session.find(KEY_MANAGER, path, "", doing) or {}
    references = secrets_in(found)
    return empty | {
        name: await read_payload_at(session, references[name])
        for name in PAYLOADS
        if name in references
    }
