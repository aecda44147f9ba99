"""OS::Cinder::QoSSpecs and QoSAssociation: quality of service of volume types."""

from collections.abc import Mapping
from typing import Final

from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.openstack.cinder.schema import QOS_ASSOCIATION
from engine.types.openstack.cinder.schema import QOS_SPECS as SCHEMA
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.cloud_operation import run_guarded
from engine.types.openstack.lookups import QOS_SPECS, VOLUME_TYPES
from engine.types.openstack.object_type import Mark, ObjectRow, ObjectType
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import VOLUME as CINDER
from engine.types.text_cleaning import as_text
from engine.words import Json

_PATH = "/qos-specs"
_ROW: Final = ObjectRow(
    "QoS specs",
    CINDER,
    _PATH,
    "qos_specs",
    "qos_specs",
    separate=frozenset({"specs"}),
    marked=False,
)


class QoSSpecs(ObjectType):
    """Cinder cannot rename specs: with a name, an interrupted create finds them by that name, which
    is unique."""

    replaces_tainted = False

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(SCHEMA, _ROW, cloud)

    def observation_key(self, call: Call) -> str | None:
        return None  # the list has no filter by ID

    def mark(self, call: Call) -> Mark:
        return Mark({"name": call.properties.get("name") or call.own_name}, {})

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        return {**await super().fields_for_create(call, session), **_specs(call)}

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        specs_path, doing = f"{path}/{segment(self.id_of(found))}", "change the QoS specs"
        wanted, known = _specs(call), found.get("specs") or {}
        if removed := sorted(set(known) - set(wanted)):
            await session.request(
                CINDER, "PUT", f"{specs_path}/delete_keys", doing, {"keys": removed}
            )
        if any(known.get(name) != one for name, one in wanted.items()):
            await session.request(CINDER, "PUT", specs_path, doing, {"qos_specs": wanted})
        return await self.get(session, path, self.id_of(found))


def _specs(call: Call) -> dict[str, Json]:
    given = call.properties.get("specs") or {}
    return {str(name): as_text(one) for name, one in given.items()}


class QoSAssociation(ResourceType):
    """Its physical ID is that of the specs; the data has the volume types."""

    replaces_tainted = False
    schema = QOS_ASSOCIATION

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def create(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._write(call), None)

    async def update(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._write(call), call.physical_id)

    async def delete(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._delete(call), call.physical_id)

    async def _write(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        specs = await QOS_SPECS.find_id(session, str(call.properties["qos_specs"]))
        given = call.properties.get("volume_types") or []
        wanted = [await VOLUME_TYPES.find_id(session, str(one)) for one in given]
        for type_id in call.data.get("types") or []:
            if type_id not in wanted:
                await _associate(session, specs, type_id, "disassociate")
        for type_id in wanted:
            await _associate(session, specs, type_id, "associate")
        return Done(specs, {}, {"types": wanted})

    async def _delete(self, call: Call) -> Outcome:
        if call.physical_id is not None:
            session = self._cloud.session(call)
            for type_id in call.data.get("types") or []:
                try:
                    await _associate(session, call.physical_id, type_id, "disassociate")
                except CloudError as error:
                    if not error.is_missing:
                        raise
        return Done(None)


async def _associate(session: Session, specs: str, type_id: str, action: str) -> None:
    """Both actions can be repeated."""
    query = {"vol_type_id": type_id}
    path, doing = f"{_PATH}/{specs}/{action}", f"{action} the QoS specs"
    await session.request(CINDER, "GET", path, doing, None, query)
