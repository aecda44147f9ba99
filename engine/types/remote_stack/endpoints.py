"""Endpoints of the Orchestration API that the operator names, for stacks that live elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from engine.types.custom_constraints import CustomConstraint, ValidationContext
from engine.words import Json

CONSTRAINT = "headgate.region"
#: The endpoint of those that name none.
USUAL = "default"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """url: of a project; its stacks are at ``url/stacks``. projects: which of ours may use it, as
    patterns. credential: a name; "" for the token of whoever asked. ca_pem: an authority, as text.
    interval: seconds of the longest pause between two looks. patience: seconds that it may be away.
    """

    name: str
    url: str
    projects: Sequence[str]
    credential: str = ""
    ca_pem: str = field(default="", repr=False)
    interval: float = 5.0
    patience: float = 3_600.0


class Endpoints(CustomConstraint):
    """Those of the configuration, by name; as a constraint: whether the context's project may use
    one."""

    name = CONSTRAINT

    def __init__(self, known: Mapping[str, Endpoint]) -> None:
        self._known = known

    def validate(self, value: Json, context: ValidationContext) -> str | None:
        return None if self.find(value, context.project) else unknown(str(value), context.project)

    def find(self, name: Json, project: str) -> Endpoint | None:
        found = self.named(name)
        lent = found and any(fnmatchcase(project, one) for one in found.projects)
        return found if lent else None

    def named(self, name: Json) -> Endpoint | None:
        """For whatever project."""
        return self._known.get(name) if isinstance(name, str) else None


def unknown(name: str, project: str) -> str:
    return f'the operator knows no endpoint "{name}" for {project}: [resource_types.remote_stack]'
