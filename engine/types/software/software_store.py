"""The port through which software types store configs and deployments.

The types compute what to store; engine/service/software/configs.py does the I/O.
All objects belong to a project. All methods are idempotent and raise Unavailable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from engine.words import Json, ResourceId, StackId, Status

#: The default group of a config.
UNGROUPED = "Heat::Ungrouped"


@dataclass(frozen=True, slots=True)
class NewConfig:
    """config: a string or a map. inputs, outputs: lists of {name, type, ...}."""

    name: str
    group: str
    config: Json = field(repr=False)
    inputs: Sequence[Mapping[str, Json]] = field(default=(), repr=False)
    outputs: Sequence[Mapping[str, Json]] = ()
    options: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Publication:
    """A deployment as its server reads it.

    key: the operation key, under which the config is stored. config: with input values. status:
    COMPLETE if the server reports no result, else IN_PROGRESS.
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
    """The state of a deployment. config: as its server reads it."""

    status: str
    reason: str
    output_values: Mapping[str, Json] = field(repr=False)
    config: NewConfig


@dataclass(frozen=True, slots=True)
class DeploymentResult:
    """The result from a server: COMPLETE or FAILED, and the output values."""

    status: Status
    reason: str
    output_values: Mapping[str, Json] = field(repr=False)


class SoftwareStore(Protocol):
    async def store_config(self, project: str, config_id: UUID, new: NewConfig) -> None:
        """Store a config under this ID. An existing config does not change."""

    async def config(self, project: str, config_id: str) -> NewConfig | None:
        """The object; None if it does not exist in this project."""

    async def delete_config(self, project: str, config_id: str) -> None:
        """Delete a config if it exists. Raises Invalid while a deployment uses it."""

    async def publish(self, project: str, published: Publication) -> None:
        """Publish the config to the server, and delete earlier signals."""

    async def deployment(self, project: str, deployment_id: str) -> Deployment | None:
        """The object; None if it does not exist in this project."""

    async def report_progress(self, project: str, deployment_id: str, reason: str) -> None:
        """Record the progress of the server; one event for each reason."""

    async def complete(self, project: str, deployment_id: str, ended: DeploymentResult) -> None:
        """Record the result."""

    async def unpublish(self, project: str, deployment_id: str) -> None:
        """Remove the deployment from its server, if it exists."""

    async def server_document(
        self,
        project: str,
        server_id: str,
        metadata: Mapping[str, Json],
        settings: Mapping[str, Json],
    ) -> bytes:
        """The metadata of a server for its agent: those of the template, its deployments, and the
        settings of the agent."""

    async def push(self, project: str, server_id: str) -> bool:
        """Write the metadata of a server to its objects, if it has any (POLL_TEMP_URL). False: one
        does not exist any more. Raises ServiceError."""
