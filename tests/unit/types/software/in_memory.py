"""An in-memory store of software configs and deployments."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

import orjson

from engine.types.http_client import ServiceError
from engine.types.software.software_store import (
    Deployment,
    DeploymentResult,
    NewConfig,
    Publication,
)
from engine.words import Json


@dataclass
class InMemoryStore:
    """By project and ID. published: in order. progress: the reported progress. pushed: the server
    and the number of deployments at that time. answers: to `push`."""

    configs: dict[tuple[str, str], NewConfig] = field(default_factory=dict)
    deployments: dict[tuple[str, str], Deployment] = field(default_factory=dict)
    published: list[Publication] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    pushed: list[tuple[str, int]] = field(default_factory=list)
    answers: list[bool | ServiceError] = field(default_factory=list)

    async def store_config(self, project: str, config_id: UUID, new: NewConfig) -> None:
        self.configs.setdefault((project, str(config_id)), new)

    async def config(self, project: str, config_id: str) -> NewConfig | None:
        return self.configs.get((project, config_id))

    async def delete_config(self, project: str, config_id: str) -> None:
        self.configs.pop((project, config_id), None)

    async def publish(self, project: str, published: Publication) -> None:
        before = self.deployments.get((project, published.deployment_id))
        self.published.append(published)
        self.deployments[project, published.deployment_id] = Deployment(
            published.status,
            published.reason,
            before.output_values if before else {},
            published.config,
        )

    async def deployment(self, project: str, deployment_id: str) -> Deployment | None:
        return self.deployments.get((project, deployment_id))

    async def report_progress(self, project: str, deployment_id: str, reason: str) -> None:
        self.reasons.append(reason)
        at = project, deployment_id
        self.deployments[at] = replace(self.deployments[at], reason=reason)

    async def complete(self, project: str, deployment_id: str, ended: DeploymentResult) -> None:
        at = project, deployment_id
        self.deployments[at] = replace(
            self.deployments[at],
            status=ended.status,
            reason=ended.reason,
            output_values=ended.output_values,
        )

    async def unpublish(self, project: str, deployment_id: str) -> None:
        self.deployments.pop((project, deployment_id), None)

    async def server_document(
        self,
        project: str,
        server_id: str,
        metadata: Mapping[str, Json],
        settings: Mapping[str, Json],
    ) -> bytes:
        return orjson.dumps({**metadata, "os-collect-config": settings})

    async def push(self, project: str, server_id: str) -> bool:
        self.pushed.append((server_id, len(self.deployments)))
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, ServiceError):
            raise answer
        return answer
