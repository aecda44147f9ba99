"""Software configs: scripts and manifests with typed inputs and outputs, never changed."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from engine.hot.expressions.masking import MASK
from engine.store.software_configs import ConfigRecord
from engine.types.software.derived_config import SIGNAL_ID
from engine.types.software.software_store import UNGROUPED, NewConfig
from engine.words import Json
from hub.api.bodies import read
from hub.api.orchestration import responses, show
from hub.api.parts import (
    Route,
    answer,
    asked_project,
    identity_of,
    parts_of,
    project_of,
    query_limit,
    query_uuid,
    uuid_of,
)
from hub.auth.roles import Right

Short = Annotated[str, Field(max_length=255)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Kind = Literal["String", "Number", "CommaDelimitedList", "Json", "Boolean"]


class Lenient(BaseModel):
    """Keys that are not known are left alone, as this API does; null is as good as nothing."""

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


class SentConfig(Lenient):
    name: Short | None = None
    group: Short | None = None
    config: str | dict[str, Any] | None = None
    inputs: list[ConfigInput] | None = None
    outputs: list[ConfigOutput] | None = None
    options: dict[str, Any] | None = None


async def create(request: web.Request) -> web.Response:
    sent = await read(request, SentConfig)
    new = NewConfig(
        name=sent.name or "",
        group=sent.group or UNGROUPED,
        config="" if sent.config is None else sent.config,
        inputs=[one.model_dump(exclude_none=True) for one in sent.inputs or ()],
        outputs=[one.model_dump(exclude_none=True) for one in sent.outputs or ()],
        options=sent.options or {},
    )
    made = await parts_of(request).engine.software.create_config(project_of(request), new)
    return answer(responses.OneSoftwareConfig(software_config=whole(made)))


async def listed(request: web.Request) -> web.Response:
    marker, limit = query_uuid(request, "marker"), query_limit(request, default=None)
    project = asked_project(request, "software_configs")
    found = await parts_of(request).engine.software.configs(project, marker, limit)
    shown: list[responses.SoftwareConfigInList] = [
        {**_short(one), "project": one.project} for one in found
    ]
    return answer(responses.SoftwareConfigs(software_configs=shown))


async def shown(request: web.Request) -> web.Response:
    config_id = uuid_of(request.match_info["config"], "software config", "NotFound")
    found = await parts_of(request).engine.software.config(project_of(request), config_id)
    document = whole(found) if sees_secrets(request) else masked(found)
    return answer(responses.OneSoftwareConfig(software_config=document))


async def delete(request: web.Request) -> web.Response:
    config_id = uuid_of(request.match_info["config"], "software config", "NotFound")
    await parts_of(request).engine.software.delete_config(project_of(request), config_id)
    return web.Response(status=204)


def _short(one: ConfigRecord) -> responses.SoftwareConfigSummary:
    return {
        "id": str(one.id),
        "name": one.name,
        "group": one.group,
        "creation_time": show.time(one.created_at),
    }


def sees_secrets(request: web.Request) -> bool:
    """Return whether the principal may see signal URLs and the values of configs and deployments.

    The store does not record which of these values are secret, so a principal without write
    access sees none of them.
    """
    return identity_of(request).may(Right.WRITE)


def whole(one: ConfigRecord, *, secrets: bool = True) -> responses.SoftwareConfig:
    """secrets: False: without the URL that a deployment is signalled at."""
    inputs = one.inputs if secrets else [_without_url(given) for given in one.inputs]
    return {
        **_short(one),
        "config": one.config,
        "inputs": inputs,
        "outputs": one.outputs,
        "options": one.options,
    }


#: Keys of inputs and outputs whose values are never secret.
_PUBLIC_KEYS = ("type", "replace_on_change", "error_output")


def masked(one: ConfigRecord) -> responses.SoftwareConfig:
    """The config for principals that may not see its values."""
    return {
        **_short(one),
        "config": MASK,
        "inputs": [_masked_entry(given) for given in one.inputs],
        "outputs": [_masked_entry(given) for given in one.outputs],
        "options": masked_map(one.options),
    }


def _masked_entry(given: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value if key in _PUBLIC_KEYS else MASK for key, value in given.items()}


def masked_map(values: Mapping[str, Json]) -> dict[str, Json]:
    """Keys are masked, too, because they can derive from a secret."""
    return {MASK: MASK} if values else {}


def _without_url(given: Mapping[str, Json]) -> dict[str, Json]:
    return {**given, **({"value": MASK} if given.get("name") == SIGNAL_ID else {})}


_P = "/v1/{project}/software_configs"
ROUTES = (
    Route("POST", _P, create, "Make a software config", "software", body=SentConfig,
          takes_body=True, response=responses.OneSoftwareConfig),
    Route("GET", _P, listed, "List software configs, newest first", "software",
          response=responses.SoftwareConfigs,
          query={
              "limit": "at most so many",
              "marker": "the last config of the page before",
              "global_tenant": "true: of every project, for those who may",
          }),
    Route("GET", f"{_P}/{{config}}", shown, "Show a software config", "software",
          response=responses.OneSoftwareConfig),
    Route("DELETE", f"{_P}/{{config}}", delete, "Delete a software config that nothing uses",
          "software", status=204),
)  # fmt: skip
