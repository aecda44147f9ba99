"""Software deployments: which config is for which server, with which values, and how far it is."""

from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from channels.schemas.words import MAP, TEXT, UUID, fields, list_of, one_of, or_null
from engine.store.software_configs import DeploymentChange, DeploymentRecord
from engine.words import Json
from hub.api.bodies import read
from hub.api.orchestration import show
from hub.api.orchestration.documents import TIME
from hub.api.orchestration.software_configs import CONFIG, Lenient, Name, Short, sees_secrets, whole
from hub.api.parts import Route, answer, parts_of, project_of, uuid_of
from hub.api.shapes import Shape

Status = Literal["IN_PROGRESS", "COMPLETE", "FAILED"]


class SentChange(Lenient):
    """What is not said stays as it was."""

    config_id: str | None = None
    input_values: dict[str, Any] | None = None
    output_values: dict[str, Any] | None = None
    action: Short | None = None
    status: Status | None = None
    status_reason: str | None = None

    def record(self) -> DeploymentChange:
        """Raises NotFound: what is no id is the id of no config."""
        config_id = None
        if self.config_id is not None:
            config_id = uuid_of(self.config_id, "software config", "NotFound")
        return DeploymentChange(
            config_id=config_id,
            input_values=self.input_values,
            output_values=self.output_values,
            action=self.action,
            status=self.status,
            status_reason=self.status_reason,
        )


class SentDeployment(SentChange):
    config_id: str = Field(min_length=1)
    server_id: Name

    def complete(self) -> SentChange:
        """With what is meant where nothing is said: a deployment that nobody has begun."""
        meant = {"input_values": {}, "action": "INIT", "status": "COMPLETE", "status_reason": ""}
        return self.model_copy(
            update={name: value for name, value in meant.items() if getattr(self, name) is None}
        )


async def create(request: web.Request) -> web.Response:
    sent = await read(request, SentDeployment)
    made = await parts_of(request).engine.software.deploy(
        project_of(request), sent.server_id, sent.complete().record()
    )
    return answer({"software_deployment": _document(made)})


async def listed(request: web.Request) -> web.Response:
    found = await parts_of(request).engine.software.deployments(
        project_of(request), request.query.get("server_id") or None
    )
    return answer({"software_deployments": [_document(one) for one in found]})


async def of_server(request: web.Request) -> web.Response:
    found = await parts_of(request).engine.software.configs_of_server(
        project_of(request), request.match_info["server"]
    )
    secrets = sees_secrets(request)
    return answer({"metadata": [whole(one, secrets=secrets) for one in found]})


async def shown(request: web.Request) -> web.Response:
    deployment_id = uuid_of(request.match_info["deployment"], "deployment", "NotFound")
    found = await parts_of(request).engine.software.deployment(project_of(request), deployment_id)
    return answer({"software_deployment": _document(found)})


async def change(request: web.Request) -> web.Response:
    deployment_id = uuid_of(request.match_info["deployment"], "deployment", "NotFound")
    wanted = (await read(request, SentChange)).record()
    changed = await parts_of(request).engine.software.change_deployment(
        project_of(request), deployment_id, wanted
    )
    return answer({"software_deployment": _document(changed)})


async def delete(request: web.Request) -> web.Response:
    deployment_id = uuid_of(request.match_info["deployment"], "deployment", "NotFound")
    await parts_of(request).engine.software.delete_deployment(project_of(request), deployment_id)
    return web.Response(status=204)


def _document(one: DeploymentRecord) -> dict[str, Json]:
    updated = {"updated_time": show.time(one.updated_at)} if one.updated_at else {}
    return {
        "id": str(one.id),
        "config_id": str(one.config_id),
        "server_id": one.server_id,
        "input_values": one.input_values,
        "output_values": one.output_values,
        "action": one.action,
        "status": one.status,
        "status_reason": one.status_reason,
        "creation_time": show.time(one.created_at),
        **updated,
    }


DEPLOYMENT = Shape("SoftwareDeployment", fields(
    {
        "id": UUID,
        "config_id": UUID,
        "server_id": TEXT,
        "input_values": MAP,
        "output_values": or_null(MAP),
        "action": TEXT,
        "status": one_of("IN_PROGRESS", "COMPLETE", "FAILED"),
        "status_reason": TEXT,
        "creation_time": TIME,
    },
    {"updated_time": TIME},
))  # fmt: skip
_ONE = fields({"software_deployment": DEPLOYMENT})
_P = "/v1/{project}/software_deployments"
_D = f"{_P}/{{deployment}}"
ROUTES = (
    Route("POST", _P, create, "Deploy a software config to a server", "software",
          body=SentDeployment, takes_body=True, gives=_ONE),
    Route("GET", _P, listed, "List software deployments, oldest first", "software",
          query={"server_id": "only those to this server"},
          gives=fields({"software_deployments": list_of(DEPLOYMENT)})),
    Route("GET", f"{_P}/metadata/{{server}}", of_server,
          "The configs deployed to a server, with their values", "software",
          gives=fields({"metadata": list_of(CONFIG)})),
    Route("GET", _D, shown, "Show a software deployment", "software", gives=_ONE),
    Route("PUT", _D, change, "Say how far a software deployment is, or give it other values",
          "software", body=SentChange, takes_body=True, gives=_ONE),
    Route("DELETE", _D, delete, "Delete a software deployment", "software", status=204),
)  # fmt: skip
