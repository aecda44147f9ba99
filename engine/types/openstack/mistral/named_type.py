"""What workflows and cron triggers have in common: their names are their IDs."""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial

from engine.types.contract import Call, Outcome
from engine.types.observed_list import ObservedList
from engine.types.openstack.cloud import Session, id_of, object_in, segment
from engine.types.openstack.cloud_operation import keep_for_successor, observed_list
from engine.types.openstack.object_type import NAME, ObjectType
from engine.types.openstack.services import WORKFLOW
from engine.words import Json


class NamedType(ObjectType):
    async def delete(self, call: Call) -> Outcome:
        return await keep_for_successor(self, call) or await super().delete(call)

    def name_of(self, call: Call) -> str:
        return str(call.properties.get(NAME) or call.own_name)

    def id_of(self, found: Mapping[str, Json]) -> str:
        return id_of(WORKFLOW, found, NAME)

    async def get(self, session: Session, path: str, object_id: str) -> Mapping[str, Json]:
        doing = f"read the {self.row.what}"
        answer = await session.request(WORKFLOW, "GET", f"{path}/{segment(object_id)}", doing)
        return self.read_object(object_in(WORKFLOW, doing, answer, ""))

    def read_object(self, found: Mapping[str, Json]) -> Mapping[str, Json]:
        """An object of a response, as the type uses it."""
        return found

    # ---- observation

    def observed_list(self, call: Call) -> ObservedList:
        """One list for each project."""
        session = self.cloud.observer_session(call)
        pages = partial(self._pages, session, call.project)
        return observed_list(pages, self.compare, f"the {self.row.what} does not exist")

    async def _pages(
        self, session: Session, project: str
    ) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        query = {"project_id": project}
        if session.reads_all_projects:
            query["all_projects"] = "true"
        async for page in session.pages(WORKFLOW, self.row.path, self.row.list_key, query):
            yield [{**self.read_object(one), "id": one.get(NAME)} for one in page]
