"""Software deployments: configs with their values for a server, and their status."""

from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from engine.hot.expressions.masking import MASK
from engine.missing_objects import no_config, no_deployment
from engine.store.software.software_configs import DeploymentChange, DeploymentRecord
from hub.api.app_context import context_of, project_of
from hub.api.orchestration import documents, responses
from hub.api.orchestration.software_configs import (
    LenientBody,
    Name,
    Short,
    config_document,
    masked_config,
    masked_map,
    sees_secrets,
)
from hub.api.request_validation import read_model, uuid_of
from hub.api.routes import Route, json_response

Status = Literal["IN_PROGRESS", "COMPLETE", "FAILED"]


class SentChange(LenientBody):
    """Absent fields keep their values."""

    config_id: str | None = None
    input_values: dict[str, Any] | None = None
    output_values: dict[str, Any] | None = None
    action: Short | None = None
    status: Status | None = None
    status_reason: str | None = None

    def record(self) -> DeploymentChange:
        """Raises NotFound for an ID that is not valid."""
        config_id = None
        if self.config_id is not None:
            config_id = uuid_of(self.config_id, no_config)
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

    def with_defaults(self) -> SentChange:
        """The default is a deployment that has not started."""
        defaults = {"input_values": {}, "action": "INIT", "status": "COMPLETE", "status_reason": ""}
        return self.model_copy(
            update={name: value for name, value in defaults.items() if getattr(self, name) is None}
        )


async def create(request: web.Request) -> web.Response:
    sent = await read_model(request, SentDeployment)
    deployment = await context_of(request).engine.software.deploy(
        project_of(request), sent.server_id, sent.with_defaults().record()
    )
    return json_response(responses.OneSoftwareDeployment(software_deployment=_document(deployment)))


async def list_deployments(request: web.Request) -> web.Response:
    deployments = await context_of(request).engine.software.deployments(
        project_of(request), request.query.get("server_id") or None
    )
    return json_response(
        responses.SoftwareDeployments(
            software_deployments=[_masked_unless_writer(request, one) for one in deployments]
        )
    )


async def list_configs_of_server(request: web.Request) -> web.Response:
    configs = await context_of(request).engine.software.configs_of_server(
        project_of(request), request.match_info["server"]
    )
    document = config_document if sees_secrets(request) else masked_config
    return json_response(responses.DeployedConfigs(metadata=[document(one) for one in configs]))


async def show(request: web.Request) -> web.Response:
    deployment_id = uuid_of(request.match_info["deployment"], no_deployment)
    software = context_of(request).engine.software
    deployment = await software.deployment(project_of(request), deployment_id)
    return json_response(
        responses.OneSoftwareDeployment(
            software_deployment=_masked_unless_writer(request, deployment)
        )
    )


async def change(request: web.Request) -> web.Response:
    deployment_id = uuid_of(request.match_info["deployment"], no_deployment)
    new = (await read_model(request, SentChange)).record()
    changed = await context_of(request).engine.software.change_deployment(
        project_of(request), deployment_id, new
    )
    return json_response(responses.OneSoftwareDeployment(software_deployment=_document(changed)))


async def delete(request: web.Request) -> web.Response:
    deployment_id = uuid_of(request.match_info["deployment"], no_deployment)
    await context_of(request).engine.software.delete_deployment(project_of(request), deployment_id)
    return web.Response(status=204)


def _masked_unless_writer(
    request: web.Request, deployment: DeploymentRecord
) -> responses.SoftwareDeployment:
    document = _document(deployment)
    if sees_secrets(request):
        return document
    document["input_values"] = masked_map(deployment.input_values)
    document["status_reason"] = MASK if deployment.status_reason else ""
    if deployment.output_values is not None:
        document["output_values"] = masked_map(deployment.output_values)
    return document


def _document(deployment: DeploymentRecord) -> responses.SoftwareDeployment:
    document: responses.SoftwareDeployment = {
        "id": str(deployment.id),
        "config_id": str(deployment.config_id),
        "server_id": deployment.server_id,
        "input_values": deployment.input_values,
        "output_values": deployment.output_values,
        "action": deployment.action,
        "status": deployment.status,
        "status_reason": deployment.status_reason,
        "creation_time": documents.time(deployment.created_at),
    }
    if deployment.updated_at:
        document["updated_time"] = documents.time(deployment.updated_at)
    return document


_P = "/v1/{project}/software_deployments"
_D = f"{_P}/{{deployment}}"
ROUTES = (
    Route("POST", _P, create, "Deploy a software config to a server", "software",
          body=SentDeployment, takes_body=True, response=responses.OneSoftwareDeployment),
    Route("GET", _P, list_deployments, "List software deployments, oldest first", "software",
          query={"server_id": "only deployments to this server"},
          response=responses.SoftwareDeployments),
    Route("GET", f"{_P}/metadata/{{server}}", list_configs_of_server,
          "The configs deployed to a server, with their values", "software",
          response=responses.DeployedConfigs),
    Route("GET", _D, show, "Show a software deployment", "software",
          response=responses.OneSoftwareDeployment),
    Route("PUT", _D, change, "Update the status or the values of a software deployment",
          "software", body=SentChange, takes_body=True, response=responses.OneSoftwareDeployment),
    Route("DELETE", _D, delete, "Delete a software deployment", "software", status=204),
)  # fmt: skip
