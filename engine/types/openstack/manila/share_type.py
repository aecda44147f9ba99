"""OS::Manila::ShareType: what shares of a type require of their back end. For administrators.

Manila cannot rename a type, and two cannot have the same name: a create first saves that there is
none.
"""

from collections.abc import Collection, Mapping
from typing import Final

from engine.types.contract import Call
from engine.types.openstack.cloud import Cloud, Query, Session, segment
from engine.types.openstack.manila.listed_type import ListedType
from engine.types.openstack.manila.schema import SHARE_TYPE
from engine.types.openstack.object_type import NAME, Mark, ObjectRow
from engine.types.openstack.services import SHARED_FILE_SYSTEM
from engine.types.text_cleaning import as_text
from engine.words import Json

EXTRA_SPECS = "extra_specs"
#: Properties that are extra specs.
_SPECS: Final = ("driver_handles_share_servers", "snapshot_support")
#: Of the list, which leaves out private types without it.
_ALL: Final = {"is_public": "all"}


class ShareType(ListedType):
    detailed_list = "/types"
    every_project: Query = _ALL
    replaces_tainted = False

    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "share type", SHARED_FILE_SYSTEM, "/types", "share_type", "share_types",
            fields={"is_public": "share_type_access:is_public"},
            separate=frozenset({EXTRA_SPECS, *_SPECS}), marked=False,
        )  # fmt: skip
        super().__init__(SHARE_TYPE, row, cloud)

    def mark(self, call: Call) -> Mark:
        return Mark({}, {})

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        found = await session.list(SHARED_FILE_SYSTEM, path, self.row.list_key, _ALL)
        return next((one for one in found if one.get(NAME) == call.properties[NAME]), None)

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        fields = await super().fields_for_create(call, session)
        given = {name: one for name in _SPECS if (one := call.properties.get(name)) is not None}
        return {**fields, EXTRA_SPECS: {name: str(one) for name, one in given.items()}}

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        return {}

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        wanted = _texts(call.properties.get(EXTRA_SPECS))
        known = _further_specs(found)
        specs = f"{path}/{segment(self.id_of(found))}/extra_specs"
        doing = "change the extra specs of the share type"
        for name in sorted(known.keys() - wanted.keys()):
            await session.delete(SHARED_FILE_SYSTEM, f"{specs}/{segment(name)}", doing)
        if any(known.get(name) != one for name, one in wanted.items()):
            body = {EXTRA_SPECS: wanted}
            await session.request(SHARED_FILE_SYSTEM, "POST", specs, doing, body)
        return await self.get(session, path, self.id_of(found))

    # ---- observation

    def is_observed(self, name: str) -> bool:
        return name == EXTRA_SPECS or super().is_observed(name)

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        if name == EXTRA_SPECS:
            return _texts(desired) == _further_specs({EXTRA_SPECS: observed})
        return super().is_same(name, desired, observed)


def _further_specs(found: Mapping[str, Json]) -> dict[str, str]:
    """The extra specs of a type that no other property sets."""
    specs = found.get(EXTRA_SPECS) or {}
    return {name: str(one) for name, one in specs.items() if name not in _SPECS}


def _texts(specs: Json) -> dict[str, str]:
    given: Mapping[str, Json] = specs or {}
    return {str(name): as_text(one) for name, one in given.items()}
