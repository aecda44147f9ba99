"""Software configs, and the metadata of servers with the configs that are deployed to them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from engine.hot.expressions.masking import MASK
from engine.missing_objects import no_config
from engine.service import Engine
from engine.service.software.configs import agent_metadata
from engine.store.software.software_configs import ConfigRecord
from engine.types.software.agent_protocol import SECRET_INPUTS
from engine.types.software.deployed_server import OS_COLLECT_CONFIG
from engine.types.software.software_store import UNGROUPED, NewConfig
from engine.words import Json
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.cells import has_cells
from hub.api.orchestration import documents, responses
from hub.api.request_validation import (
    invalid,
    project_or_all,
    query_limit,
    query_uuid,
    read_model,
    uuid_of,
)
from hub.api.routes import Route, json_response
from hub.auth.roles import Right

Short = Annotated[str, Field(max_length=255)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Kind = Literal["String", "Number", "CommaDelimitedList", "Json", "Boolean"]


class LenientBody(BaseModel):
    """Unknown keys are ignored and null is absent, as in Heat."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class ConfigInput(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: Name
    description: str | None = None
    type: Kind = "String"
    default: Any = None
    replace_on_change: bool = False
    value: Any = None


class ConfigOutput(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: Name
    description: str | None = None
    type: Kind = "String"
    error_output: bool = False


class SentConfig(LenientBody):
    name: Short | None = None
    group: Short | None = None
    config: str | dict[str, Any] | None = None
    inputs: list[ConfigInput] | None = None
    outputs: list[ConfigOutput] | None = None
    options: dict[str, Any] | None = None


async def create(request: web.Request) -> web.Response:
    sent = await read_model(request, SentConfig)
    new = NewConfig(
        name=sent.name or "",
        group=sent.group or UNGROUPED,
        config="" if sent.config is None else sent.config,
        inputs=[one.model_dump(exclude_none=True) for one in sent.inputs or ()],
        outputs=[one.model_dump(exclude_none=True) for one in sent.outputs or ()],
        options=sent.options or {},
    )
    config = await context_of(request).engine.software.create_config(project_of(request), new)
    return json_response(responses.OneSoftwareConfig(software_config=config_document(config)))


async def list_configs(request: web.Request) -> web.Response:
    marker, limit = query_uuid(request, "marker"), query_limit(request, default=None)
    project = project_or_all(request, "software_configs")
    if project is None and has_cells(request):
        reason = "configs of all projects are not listed on a server with cells"
        raise invalid("global_tenant", reason, "List the configs of a project.")
    configs: list[responses.SoftwareConfigInList] = [
        {**_summary(one), "project": one.project}
        for one in await context_of(request).engine.software.configs(project, marker, limit)
    ]
    return json_response(responses.SoftwareConfigs(software_configs=configs))


async def show(request: web.Request) -> web.Response:
    config_id = uuid_of(request.match_info["config"], no_config)
    config = await context_of(request).engine.software.config(project_of(request), config_id)
    document = config_document(config) if sees_secrets(request) else masked_config(config)
    return json_response(responses.OneSoftwareConfig(software_config=document))


async def delete(request: web.Request) -> web.Response:
    config_id = uuid_of(request.match_info["config"], no_config)
    await context_of(request).engine.software.delete_config(project_of(request), config_id)
    return web.Response(status=204)


def _summary(config: ConfigRecord) -> responses.SoftwareConfigSummary:
    return {
        "id": str(config.id),
        "name": config.name,
        "group": config.group,
        "creation_time": documents.time(config.created_at),
    }


def sees_secrets(request: web.Request) -> bool:
    """Return whether the principal may see signal URLs and the values of configs and deployments.

    The store does not record which of these values are secret, so a principal without write
    access sees none of them.
    """
    return identity_of(request).may(Right.WRITE)


def config_document(config: ConfigRecord, *, secrets: bool = True) -> responses.SoftwareConfig:
    """secrets: False masks the signal URL of a deployment, and its password."""
    inputs = config.inputs if secrets else [_mask_secret(entry) for entry in config.inputs]
    return {
        **_summary(config),
        "config": config.config,
        "inputs": inputs,
        "outputs": config.outputs,
        "options": config.options,
    }


#: Keys of inputs and outputs whose values are never secret.
_PUBLIC_KEYS = ("type", "replace_on_change", "error_output")


def masked_config(config: ConfigRecord) -> responses.SoftwareConfig:
    """The config for principals that may not see its values."""
    return {
        **_summary(config),
        "config": MASK,
        "inputs": [_mask_entry(entry) for entry in config.inputs],
        "outputs": [_mask_entry(entry) for entry in config.outputs],
        "options": masked_map(config.options),
    }


def _mask_entry(entry: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value if key in _PUBLIC_KEYS else MASK for key, value in entry.items()}


def masked_map(values: Mapping[str, Json]) -> dict[str, Json]:
    """Keys are masked, too, because they can derive from a secret."""
    return {MASK: MASK} if values else {}


def _mask_secret(entry: Mapping[str, Json]) -> dict[str, Json]:
    return {**entry, **({"value": MASK} if entry.get("name") in SECRET_INPUTS else {})}


class SoftwareServer(Protocol):
    """A resource to which software can be deployed."""

    @property
    def type(self) -> str: ...
    @property
    def physical_id(self) -> str | None: ...
    @property
    def attributes(self) -> Json: ...
    @property
    def metadata(self) -> Json: ...


def is_server(engine: Engine, type_name: str) -> bool:
    schema = engine.reads.types.get(type_name)
    return schema is not None and OS_COLLECT_CONFIG in schema.attributes


async def server_metadata(
    engine: Engine, project: str, server: SoftwareServer, *, secrets: bool = True
) -> dict[str, Json]:
    """The metadata of the template, with the deployed configs and the settings of the agent.

    secrets: False leaves out the credentials of the agent.
    """
    of_template = server.metadata or {}
    settings = (server.attributes or {}).get(OS_COLLECT_CONFIG) or {} if secrets else {}
    configs = await engine.software.configs_of_server(project, server.physical_id or "")
    deployed = [config_document(config, secrets=secrets) for config in configs]
    return agent_metadata(of_template, settings, deployed)


_P = "/v1/{project}/software_configs"
ROUTES = (
    Route("POST", _P, create, "Create a software config", "software", body=SentConfig,
          takes_body=True, response=responses.OneSoftwareConfig),
    Route("GET", _P, list_configs, "List software configs, newest first", "software",
          response=responses.SoftwareConfigs,
          query={
              "limit": "maximum number of items",
              "marker": "the last config of the previous page",
              "global_tenant": "true: configs of all projects, if you have a role in every project",
          }),
    Route("GET", f"{_P}/{{config}}", show, "Show a software config", "software",
          response=responses.OneSoftwareConfig),
    Route("DELETE", f"{_P}/{{config}}", delete, "Delete an unused software config",
          "software", status=204),
)  # fmt: skip
