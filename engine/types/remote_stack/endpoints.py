"""The endpoints for remote stacks, from the settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from engine.types.custom_constraints import CustomConstraint, ValidationContext
from engine.words import Json

CONSTRAINT = "headgate.region"
#: The endpoint of a resource without `region_name`.
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """url: of a project; its stacks are at ``url/stacks``. projects: patterns of the local projects
    that may use it. credential: a name; "" for the token of the request. ca_pem: a CA certificate.
    interval: the longest poll interval in seconds. patience: seconds that it may be unavailable.
    """

    name: str
    url: str
    projects: Sequence[str]
    credential: str = ""
    ca_pem: str = field(default="", repr=False)
    interval: float = 5.0
    patience: float = 3_600.0


class Endpoints(CustomConstraint):
    """The configured endpoints by name. As a constraint: whether the project may use one."""

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
        """The endpoint with this name, for any project."""
        return self._known.get(name) if isinstance(name, str) else None


def unknown(name: str, project: str) -> str:
    return f'the operator knows no endpoint "{name}" for {project}: [resource_types.remote_stack]'
