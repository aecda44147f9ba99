"""A keeper of software configs and deployments that forgets everything in the end."""

from dataclasses import dataclass, field
from uuid import UUID

from engine.types.software.keeper import NewConfig


@dataclass
class InMemory:
    """By project and id."""

    configs: dict[tuple[str, str], NewConfig] = field(default_factory=dict)

    async def keep_config(self, project: str, config_id: UUID, new: NewConfig) -> None:
        self.configs.setdefault((project, str(config_id)), new)

    async def config(self, project: str, config_id: str) -> NewConfig | None:
        return self.configs.get((project, config_id))

    async def drop_config(self, project: str, config_id: str) -> None:
        self.configs.pop((project, config_id), None)
