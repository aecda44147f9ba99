"""What the types of Manila have in common: lists with all fields of the objects."""

from collections.abc import AsyncIterator, Mapping, Sequence

from engine.types.contract import Call
from engine.types.openstack.cloud import Query, Session
from engine.types.openstack.object_type import Mark, ObjectType
from engine.types.openstack.services import SHARED_FILE_SYSTEM
from engine.words import Json


class ListedType(ObjectType):
    """detailed_list: the path of the list with all fields. every_project: the query with which an
    administrator reads those of all projects."""

    lists_all = True
    detailed_list: str
    every_project: Query = {"all_tenants": "1"}  # noqa: RUF012

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        if not mark.fields:
            return None
        key = self.row.list_key
        found = await session.list(SHARED_FILE_SYSTEM, self.detailed_list, key, mark.query)
        return next((one for one in map(self.read_object, found) if mark.is_on(one)), None)

    def read_object(self, found: Mapping[str, Json]) -> Mapping[str, Json]:
        """An object of a response, as the type uses it."""
        return found

    async def post(
        self, call: Call, session: Session, path: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        return self.read_object(await super().post(call, session, path, fields))

    def _object(self, answer: Json) -> Mapping[str, Json]:
        return self.read_object(super()._object(answer))

    # ---- observation

    async def list_all(self, session: Session) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        """Manila cuts it off at its longest page."""
        query = self.every_project if session.reads_all_projects else None
        key = self.row.list_key
        async for page in session.pages(SHARED_FILE_SYSTEM, self.detailed_list, key, query):
            yield [self.read_object(one) for one in page]
