"""Where software configs and deployments are kept: what the types ask of whoever keeps them.

The types compute what is to be kept; a keeper (engine/service/software_keeper.py) does the I/O.
Everything is a project's own. All of it may be called again with the same arguments, and then
changes nothing. Raises Unavailable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from engine.words import Json

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


class SoftwareKeeper(Protocol):
    async def keep_config(self, project: str, config_id: UUID, new: NewConfig) -> None:
        """Under this id, once: what is there already stays as it is."""

    async def config(self, project: str, config_id: str) -> NewConfig | None:
        """None: there is none, or it is another project's."""

    async def drop_config(self, project: str, config_id: str) -> None:
        """Also when it is gone. Raises Invalid while a deployment uses it."""
