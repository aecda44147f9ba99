"""The port through which software types store configs and deployments.

The types compute what to store; engine/service/software/config_store.py does the I/O.
Everything is a project's own. All of it may be called again with the same arguments, and then
changes nothing. Raises Unavailable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from engine.words import Json, ResourceId, StackId, Status

#: The group of a config that names none.
UNGROUPED = "Heat::Ungrouped"


@dataclass(frozen=True, slots=True)
class NewConfig:
    """config: text, or a map. inputs, outputs: lists of {name, type, ...}."""

    name: str
    group: str
    config: Json = field(repr=False)
    inputs: Sequence[Mapping[str, Json]] = field(default=(), repr=False)
    outputs: Sequence[Mapping[str, Json]] = ()
    options: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Publication:
    """What a server is to see of a deployment.

    key: of the operation; config is kept under it. config: with the values in its inputs.
    status: COMPLETE when nobody will say how it ended, else IN_PROGRESS.
    """

    deployment_id: str
    key: UUID
    stack_id: StackId
    resource_id: ResourceId
    server_id: str
    config: NewConfig
    input_values: Mapping[str, Json] = field(repr=False)
    action: str
    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """How far a deployment is. config: what its server sees."""

    status: str
    reason: str
    output_values: Mapping[str, Json] = field(repr=False)
    config: NewConfig


@dataclass(frozen=True, slots=True)
class Ended:
    """How a server's work ended: COMPLETE or FAILED, and what it gave back."""

    status: Status
    reason: str
    output_values: Mapping[str, Json] = field(repr=False)


class SoftwareStore(Protocol):
    async def store_config(self, project: str, config_id: UUID, new: NewConfig) -> None:
        """Under this id, once: what is there already stays as it is."""

    async def config(self, project: str, config_id: str) -> NewConfig | None:
        """None: there is none, or it is another project's."""

    async def delete_config(self, project: str, config_id: str) -> None:
        """Also when it is gone. Raises Invalid while a deployment uses it."""

    async def publish(self, project: str, published: Publication) -> None:
        """Show the server its config, and forget the signals that came before."""

    async def deployment(self, project: str, deployment_id: str) -> Deployment | None:
        """None: there is none, or it is another project's."""

    async def report_progress(self, project: str, deployment_id: str, reason: str) -> None:
        """Somebody says that the server is at it; told once for each reason."""

    async def complete(self, project: str, deployment_id: str, ended: Ended) -> None:
        """Write down how it ended."""

    async def unpublish(self, project: str, deployment_id: str) -> None:
        """The server is not to see it any more. Also when it is gone."""
