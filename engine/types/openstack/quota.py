"""The limits of a project in a service: OS::Nova::Quota, OS::Cinder::Quota, OS::Octavia::Quota. For
administrators.

The project is the physical ID. Deleting the resource restores the service's defaults.
"""

from collections.abc import Mapping

from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Outcome
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.cloud_operation import CloudType, run_guarded
from engine.types.openstack.neutron.lookups import PROJECTS
from engine.types.openstack.services import Service
from engine.words import Json

_PROJECT = "project"


class Quota(CloudType):
    """microversion: of the service's API; "" for the usual one. path: of the limits of projects.
    key: of the limits in documents."""

    replaces_tainted = False

    def __init__(
        self,
        schema: TypeSchema,
        service: Service,
        cloud: Cloud,
        microversion: str = "",
        *,
        path: str = "/os-quota-sets",
        key: str = "quota_set",
    ) -> None:
        super().__init__(cloud)
        self.schema = schema
        self._service = service
        self._microversion = microversion
        self._path, self._key = path, key

    async def create(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._write(call), None)

    async def update(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._write(call), call.physical_id)

    async def _write(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        project = await PROJECTS.verify(session, str(call.properties[_PROJECT]))
        limits = {
            name: one
            for name, one in call.properties.items()
            if name != _PROJECT and one is not None
        }
        found = await self._request(session, "PUT", project, {self._key: limits})
        return Done(project, {"show": dict(found)})

    async def _delete(self, call: Call) -> Outcome:
        if call.physical_id is not None:
            await self._cloud.session(call).delete(
                self._service,
                f"{self._path}/{segment(call.physical_id)}",
                "reset the limits of the project",
                microversion=self._microversion,
            )
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        found = await self._request(session, "GET", str(call.physical_id))
        return Done(call.physical_id, {"show": dict(found)})

    async def _request(
        self, session: Session, method: str, project: str, body: Json = None
    ) -> Mapping[str, Json]:
        doing = {"PUT": "change", "GET": "read"}[method]
        answer = await session.request(
            self._service,
            method,
            f"{self._path}/{segment(project)}",
            f"{doing} the limits of the project",
            body,
            microversion=self._microversion,
        )
        return dict((answer or {}).get(self._key) or {})
