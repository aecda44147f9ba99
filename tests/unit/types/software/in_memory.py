"""An in-memory store of software configs and deployments."""

from dataclasses import dataclass, field, replace
from uuid import UUID

from engine.types.software.software_store import (
    Deployment,
    DeploymentResult,
    NewConfig,
    Publication,
)


@dataclass
class InMemoryStore:
    """By project and ID. published: in order. progress: the reported progress."""

    configs: dict[tuple[str, str], NewConfig] = field(default_factory=dict)
    deployments: dict[tuple[str, str], Deployment] = field(default_factory=dict)
    published: list[Publication] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

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
