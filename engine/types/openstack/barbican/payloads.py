"""The payloads of secrets. They are secret: no reason and no log may have one."""

from base64 import b64decode, b64encode
from collections.abc import Mapping

from engine.types.openstack.barbican.references import id_in, mapping_in
from engine.types.openstack.cloud import Session
from engine.types.openstack.services import KEY_MANAGER
from engine.words import Json


async def read_payload(session: Session, found: Mapping[str, Json]) -> bytes | None:
    """The payload of a secret that was read; None if it has none. Raises CloudError."""
    content_type = mapping_in(found, "content_types").get("default")
    if not content_type:
        return None
    response = await session.send(
        KEY_MANAGER,
        "GET",
        f"/secrets/{id_in(found.get('secret_ref'))}/payload",
        "read the payload of the secret",
        headers={"Accept": str(content_type)},
    )
    return response.body


async def read_payload_at(session: Session, reference: Json) -> str:
    """The payload of the secret with this URL, as text. Raises CloudError."""
    path = f"/secrets/{id_in(reference)}"
    found = await session.request(KEY_MANAGER, "GET", path, "read the secret")
    return text_of(await read_payload(session, found if isinstance(found, Mapping) else {})) or ""


def text_of(payload: bytes | None) -> str | None:
    """A payload as an attribute: text as it is, other bytes in Base64."""
    if payload is None:
        return None
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        text = "\0"
    return b64encode(payload).decode() if "\0" in text else text


def payload_of(properties: Mapping[str, Json]) -> bytes | None:
    """The payload that Barbican stores for these properties: it removes spaces around it."""
    if (text := properties.get("payload")) is None:
        return None
    stripped = str(text).strip()
    encoded = properties.get("payload_content_encoding") is not None
    return b64decode(stripped) if encoded else stripped.encode()
