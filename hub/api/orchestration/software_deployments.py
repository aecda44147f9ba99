"""Software deployments: which config is for which server, with which values, and how far it is."""

from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from engine.hot.expressions.masking import MASK
from engine.store.software_configs import DeploymentChange, DeploymentRecord
from hub.api.bodies import read
from hub.api.orchestration import responses, show
from hub.api.orchestration.software_configs import (
    Lenient,
    Name,
    Short,
    masked,
    masked_map,
    sees_secrets,
    whole,
)
from hub.api.parts import Route, answer, parts_of, project_of, uuid_of

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
    return answer(responses.OneSoftwareDeployment(software_deployment=_document(made)))


async def listed(request: web.Request) -> web.Response:
    found = await parts_of(request).engine.software.deployments(
        project_of(request), request.query.get("server_id") or None
    )
    return answer(
        responses.SoftwareDeployments(software_deployments=[_shown(request, one) for one in found])
    )


async def of_server(request: web.Request) -> web.Response:
    found = await parts_of(request).engine.software.configs_of_server(
        project_of(request), request.match_info["server"]
    )
    document = whole if sees_secrets(request) else masked
    return answer(responses.DeployedConfigs(metadata=[document(one) for one in found]))


async def shown(request: web.Request) -> web.Response:
    deployment_id = uuid_of(request.match_info["deployment"], "deployment", "NotFound")
    found = await parts_of(request).engine.software.deployment(project_of(request), deployment_id)
    return answer(responses.OneSoftwareDeployment(software_deployment=_shown(request, found)))


async def change(request: web.Request) -> web.Response:
    deployment_id = uuid_of(request.match_info["deployment"], "deployment", "NotFound")
    wanted = (await read(request, SentChange)).record()
    changed = await parts_of(request).engine.software.change_deployment(
        project_of(request), deployment_id, wanted
    )
    return answer(responses.OneSoftwareDeployment(software_deployment=_document(changed)))


async def delete(request: web.Request) -> web.Response:
    deployment_id = uuid_of(request.match_info["deployment"], "deployment", "NotFound")
    await parts_of(request).engine.software.delete_deployment(project_of(request), deployment_id)
    return web.Response(status=204)


def _shown(request: web.Request, one: DeploymentRecord) -> responses.SoftwareDeployment:
    document = _document(one)
    if sees_secrets(request):
        return document
    document["input_values"] = masked_map(one.input_values)
    document["status_reason"] = MASK if one.status_reason else ""
    if one.output_values is not None:
        document["output_values"] = masked_map(one.output_values)
    return document


def _document(one: DeploymentRecord) -> responses.SoftwareDeployment:
    shown: responses.SoftwareDeployment = {
        "id": str(one.id),
        "config_id": str(one.config_id),
        "server_id": one.server_id,
        "input_values": one.input_values,
        "output_values": one.output_values,
        "action": one.action,
        "status": one.status,
        "status_reason": one.status_reason,
        "creation_time": show.time(one.created_at),
    }
    if one.updated_at:
        shown["updated_time"] = show.time(one.updated_at)
    return shown


_P = "/v1/{project}/software_deployments"
_D = f"{_P}/{{deployment}}"
ROUTES = (
    Route("POST", _P, create, "Deploy a software config to a server", "software",
          body=SentDeployment, takes_body=True, response=responses.OneSoftwareDeployment),
    Route("GET", _P, listed, "List software deployments, oldest first", "software",
          query={"server_id": "only those to this server"},
          response=responses.SoftwareDeployments),
    Route("GET", f"{_P}/metadata/{{server}}", of_server,
          "The configs deployed to a server, with their values", "software",
          response=responses.DeployedConfigs),
    Route("GET", _D, shown, "Show a software deployment", "software",
          response=responses.OneSoftwareDeployment),
    Route("PUT", _D, change, "Say how far a software deployment is, or give it other values",
          "software", body=SentChange, takes_body=True, response=responses.OneSoftwareDeployment),
    Route("DELETE", _D, delete, "Delete a software deployment", "software", status=204),
)  # fmt: skip
