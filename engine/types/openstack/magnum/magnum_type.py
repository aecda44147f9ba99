"""What the types of Magnum have in common: IDs in `uuid`, updates by JSON patches, lists with all
fields of the objects."""

from collections.abc import AsyncIterator, Mapping, Sequence

from engine.types.contract import Call
from engine.types.openstack.cloud import Session, id_of, object_in, segment
from engine.types.openstack.magnum.lookups import UUID
from engine.types.openstack.object_type import Mark, ObjectType
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import CONTAINER_INFRASTRUCTURE
from engine.words import Json


class MagnumType(ObjectType):
    lists_all = True

    def id_of(self, found: Mapping[str, Json]) -> str:
        return id_of(CONTAINER_INFRASTRUCTURE, found, UUID)

    def _object(self, answer: Json) -> Mapping[str, Json]:
        return object_in(CONTAINER_INFRASTRUCTURE, f"read the {self.row.what}", answer, "")

    async def post(
        self, call: Call, session: Session, path: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        doing = f"create the {self.row.what}"
        answer = await session.request(CONTAINER_INFRASTRUCTURE, "POST", path, doing, fields)
        try:
            found = self._object(answer)
            self.id_of(found)
        except CloudError as error:  # the object may exist
            raise CloudError(str(error), retry=True, public=error.public) from None
        return found

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        """Lists have no filters."""
        found = await session.list(CONTAINER_INFRASTRUCTURE, path, self.row.list_key)
        return next((one for one in found if self.has_mark(one, mark)), None)

    def has_mark(self, found: Mapping[str, Json], mark: Mark) -> bool:
        return mark.is_on(found)

    async def put(
        self, session: Session, path: str, object_id: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Change the fields that differ: Magnum refuses to set others of an object in use."""
        found = await self.get(session, path, object_id)
        if patch := self.patch_of(found, fields):
            await self.send_patch(session, path, object_id, patch)
            found = await self.get(session, path, object_id)
        return found

    def patch_of(
        self, found: Mapping[str, Json], fields: Mapping[str, Json]
    ) -> list[Mapping[str, Json]]:
        """The JSON patch that gives an object these fields."""
        return [
            {"op": "remove", "path": f"/{name}"}
            if value is None
            else {"op": "replace", "path": f"/{name}", "value": value}
            for name, value in sorted(fields.items())
            if found.get(name) != value
        ]

    async def send_patch(
        self, session: Session, path: str, object_id: str, patch: Sequence[Mapping[str, Json]]
    ) -> None:
        place, doing = f"{path}/{segment(object_id)}", f"update the {self.row.what}"
        await session.request(CONTAINER_INFRASTRUCTURE, "PATCH", place, doing, patch)

    # ---- observation

    def list_all(self, session: Session) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        """Of all projects, for an administrator."""
        path = f"{self.row.path}/detail"
        return session.pages(CONTAINER_INFRASTRUCTURE, path, self.row.list_key)
