"""Metadata of a server: the template's, what is deployed to it, and how its agent is to ask."""

from typing import Protocol

from engine.service import Engine
from engine.types.software.deployed_server import OS_COLLECT_CONFIG
from engine.words import Json
from hub.api.orchestration.software_configs import whole


class Server(Protocol):
    """A resource that software may be deployed to."""

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


async def of_server(
    engine: Engine, project: str, one: Server, *, secrets: bool = True
) -> dict[str, Json]:
    """Settings of the agent that the template gives stay beside ours. secrets: False: without
    those by which one could speak for the server."""
    by_template = one.metadata or {}
    ours = (one.attributes or {}).get(OS_COLLECT_CONFIG) or {} if secrets else {}
    found = await engine.software.configs_of_server(project, one.physical_id or "")
    return {
        **by_template,
        "deployments": [whole(config, secrets=secrets) for config in found],
        "os-collect-config": {**(by_template.get("os-collect-config") or {}), **ours},
    }
