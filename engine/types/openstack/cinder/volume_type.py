"""OS::Cinder::VolumeType and EncryptedVolumeType. For administrators."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from engine.types.contract import Call, Done, Failed, Outcome
from engine.types.openstack.cinder.schema import ENCRYPTED_VOLUME_TYPE, VOLUME_TYPE
from engine.types.openstack.cloud import Cloud, Session, id_of, segment
from engine.types.openstack.cloud_operation import CloudType, run_guarded
from engine.types.openstack.lookups import VOLUME_TYPES
from engine.types.openstack.neutron.lookups import PROJECTS
from engine.types.openstack.object_type import Mark, ObjectRow, ObjectType
from engine.types.openstack.services import VOLUME as CINDER
from engine.types.text_cleaning import as_text
from engine.words import Json

_PUBLIC = "os-volume-type-access:is_public"
_ROW: Final = ObjectRow(
    "volume type",
    CINDER,
    "/types",
    "volume_type",
    "volume_types",
    fields={"is_public": _PUBLIC},
    separate=frozenset({"metadata", "projects"}),
    marked=False,
)


class VolumeType(ObjectType):
    replaces_tainted = False

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(VOLUME_TYPE, _ROW, cloud)

    def observation_key(self, call: Call) -> str | None:
        return None  # the list has no filter by ID

    def mark(self, call: Call) -> Mark:
        """The list has no filter by name, and leaves out private types without this one."""
        return replace(super().mark(call), query={"is_public": "None"})

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        """The field has another name than in a create."""
        fields = await super().fields_for_update(call, session, names)
        if _PUBLIC in fields:
            fields["is_public"] = fields.pop(_PUBLIC)
        return fields

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        type_path = f"{path}/{segment(self.id_of(found))}"
        given = call.properties.get("metadata") or {}
        wanted = {str(name): as_text(one) for name, one in given.items()}
        known = found.get("extra_specs") or {}
        doing = "change the extra specs of the volume type"
        for name in sorted(set(known) - set(wanted)):
            await session.request(
                CINDER, "DELETE", f"{type_path}/extra_specs/{segment(name)}", doing
            )
        if any(known.get(name) != one for name, one in wanted.items()):
            body: Json = {"extra_specs": wanted}
            await session.request(CINDER, "POST", f"{type_path}/extra_specs", doing, body)
        if not found.get(_PUBLIC, True):
            await _write_access(session, call, type_path)
        return await self.get(session, path, self.id_of(found))


async def _write_access(session: Session, call: Call, type_path: str) -> None:
    """Allow the type to the projects, and to no others."""
    access = await session.list(CINDER, f"{type_path}/os-volume-type-access", "volume_type_access")
    now = {id_of(CINDER, one, "project_id") for one in access}
    given = call.properties.get("projects") or []
    wanted = {await PROJECTS.verify(session, str(one)) for one in given}
    for action, projects in (
        ("addProjectAccess", wanted - now),
        ("removeProjectAccess", now - wanted),
    ):
        for project in sorted(projects):
            body = {action: {"project": project}}
            doing = "change the projects of the volume type"
            await session.request(CINDER, "POST", f"{type_path}/action", doing, body)


class EncryptedVolumeType(CloudType):
    """The encryption of a volume type, which is the physical ID. A type has at most one."""

    replaces_tainted = False
    schema = ENCRYPTED_VOLUME_TYPE

    async def create(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._create(call), None)

    async def update(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._update(call), call.physical_id)

    async def _create(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        type_id = await VOLUME_TYPES.find_id(session, str(call.properties["volume_type"]))
        found = await _read(session, type_id)
        if found and not call.repeated:
            reason = f"the volume type {type_id} has an encryption already"
            return Failed(reason, public_reason="the volume type has an encryption already")
        if not found:
            path, doing = f"/types/{segment(type_id)}/encryption", "encrypt the volume type"
            await session.request(CINDER, "POST", path, doing, {"encryption": _fields(call)})
        return Done(type_id, {"show": await _read(session, type_id)})

    async def _update(self, call: Call) -> Outcome:
        session, type_id = self._cloud.session(call), str(call.physical_id)
        encryption = str((await _read(session, type_id)).get("encryption_id"))
        path = f"/types/{segment(type_id)}/encryption/{segment(encryption)}"
        doing = "change the encryption of the volume type"
        await session.request(CINDER, "PUT", path, doing, {"encryption": _fields(call)})
        return Done(type_id, {"show": await _read(session, type_id)})

    async def _delete(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return Done(None)
        session, type_id = self._cloud.session(call), call.physical_id
        found = await _read(session, type_id)
        if found:
            encryption = id_of(CINDER, found, "encryption_id")
            path = f"/types/{segment(type_id)}/encryption/{segment(encryption)}"
            doing = "remove the encryption of the volume type"
            await session.delete(CINDER, path, doing)
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        found = await _read(session, str(call.physical_id))
        if not found:
            reason = "the volume type has no encryption"
            return Failed(reason, call.physical_id, call.data, public_reason=reason)
        return Done(call.physical_id, {"show": found})


def _fields(call: Call) -> dict[str, Json]:
    names = ("provider", "cipher", "key_size", "control_location")
    return {name: call.properties.get(name) for name in names}


async def _read(session: Session, type_id: str) -> dict[str, Json]:
    """The encryption of a type; empty if it has none, or does not exist."""
    path = f"/types/{segment(type_id)}/encryption"
    found = await session.find(CINDER, path, "", "read the encryption of the volume type")
    return dict(found or {})
