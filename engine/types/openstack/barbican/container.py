"""OS::Barbican::GenericContainer, RSAContainer and CertificateContainer: a group of secrets."""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call
from engine.types.openstack.barbican.references import (
    SECRETS,
    entries_in,
    id_in,
    reference_to,
    secrets_in,
)
from engine.types.openstack.barbican.schema import (
    CERTIFICATE_CONTAINER,
    GENERIC_CONTAINER,
    RSA_CONTAINER,
)
from engine.types.openstack.barbican.stored_type import ClaimConflict, StoredType
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import KEY_MANAGER
from engine.words import Json

#: The name of the consumer that an operation registers for the container that it claims.
CONSUMER: Final = "headgate"
_SUFFIX: Final = "_ref"


class SecretContainer(StoredType):
    """kind: the type of the container in Barbican."""

    what, path, key, reference_field = "container", "/containers", "containers", "container_ref"

    def __init__(self, cloud: Cloud, schema: TypeSchema, kind: str) -> None:
        super().__init__(cloud)
        self.schema = schema
        self._kind = kind

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        seen: dict[Json, str] = {}
        names: set[Json] = set()
        for path, name, reference in _secrets(properties):
            if reference is not None and reference in seen:
                reason = f"is the same secret as {seen[reference]}"
                remedy = "Remove one of them: a container has each secret once."
                findings.add(f"{place}.{path}", reason, remedy)
            if name in names:
                reason = f'has the same name as another secret: "{name}"'
                findings.add(f"{place}.{path}", reason, "Use another name.")
            seen.setdefault(reference, path)
            names.add(name)

    async def body(self, session: Session, call: Call, name: str) -> Mapping[str, Json]:
        references = [
            {"name": key, "secret_ref": await reference_to(session, SECRETS.path, reference)}
            for _, key, reference in _secrets(call.properties)
        ]
        return {"type": self._kind, "name": name, "secret_refs": references}

    async def attributes_of(
        self, session: Session, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        others = [one for one in entries_in(found, "consumers") if one.get("name") != CONSUMER]
        return {
            "status": found.get("status"),
            "container_ref": found.get("container_ref"),
            "secret_refs": secrets_in(found),
            "consumers": others,
            "show": {**found, "consumers": others},
        }

    async def is_alike(
        self, session: Session, properties: Mapping[str, Json], found: Mapping[str, Json]
    ) -> bool:
        wanted = {name: id_in(reference) for _, name, reference in _secrets(properties)}
        stored = {name: id_in(reference) for name, reference in secrets_in(found).items()}
        return found.get("type") == self._kind and wanted == stored

    async def claim(self, session: Session, object_id: str, operation: str) -> bool:
        """Raises ClaimConflict: operations that register at the same time withdraw."""
        container = await self._read(session, object_id)
        if container is None or _claimants(container) - {operation}:
            return False
        path, entry = f"{self.path}/{object_id}/consumers", _consumer(operation)
        doing = "mark the container"
        try:
            await session.request(KEY_MANAGER, "POST", path, doing, entry)
            container = await self._read(session, object_id)
        except CloudError as error:
            if error.is_missing:
                return False
            raise
        if container is not None and _claimants(container) == {operation}:
            return True
        try:
            await session.send(KEY_MANAGER, "DELETE", path, doing, entry)
        except CloudError as error:
            if not error.is_missing:
                raise
        raise ClaimConflict


def container_types(cloud: Cloud) -> list[SecretContainer]:
    return [
        SecretContainer(cloud, GENERIC_CONTAINER, "generic"),
        SecretContainer(cloud, RSA_CONTAINER, "rsa"),
        SecretContainer(cloud, CERTIFICATE_CONTAINER, "certificate"),
    ]


def _secrets(properties: Mapping[str, Json]) -> Iterator[tuple[str, Json, Json]]:
    """(path of the property, name in the container, reference)"""
    for number, one in enumerate(properties.get("secrets") or ()):
        if isinstance(one, Mapping):
            yield f"secrets[{number}]", one.get("name"), one.get("ref")
    for name, reference in properties.items():
        if name.endswith(_SUFFIX) and reference is not None:
            yield name, name.removesuffix(_SUFFIX), reference


def _consumer(operation: str) -> dict[str, str]:
    return {"name": CONSUMER, "URL": f"urn:uuid:{operation}"}


def _claimants(found: Mapping[str, Json]) -> set[str]:
    """The operations that have registered for a container."""
    own = [one for one in entries_in(found, "consumers") if one.get("name") == CONSUMER]
    return {str(one.get("URL")).rpartition(":")[2] for one in own}
