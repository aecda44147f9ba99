"""Credentials that the operator lends to templates by name; what is in them no template sees.

Each is sent to the origins that the operator names, and for the projects they name; so nobody has
one sent to a server of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from yarl import URL

from engine.types.custom_constraints import Asker, CustomConstraint
from engine.words import Json

CONSTRAINT = "headgate.credential"


@dataclass(frozen=True, slots=True)
class Credential:
    """A header that says who asks. secret: what it is made of. origins: such as
    ``https://api.example.org``. projects: as patterns."""

    header: str
    value: str = field(repr=False)
    secret: str = field(repr=False)
    origins: Sequence[str]
    projects: Sequence[str]


class NotLent(Exception):
    """A credential may not be used so; the text says why."""


class Credentials(CustomConstraint):
    """Those of the configuration, by name; as a constraint: whether the asker's project may use
    one."""

    name = CONSTRAINT

    def __init__(self, known: Mapping[str, Credential]) -> None:
        self._known = known

    def broken(self, value: Json, asker: Asker) -> str | None:
        return None if self._lent(value, asker.project) else _unknown(value, asker.project)

    def headers(self, name: str, project: str, url: str) -> dict[str, str]:
        """Raises NotLent."""
        found = self._lent(name, project)
        if found is None:
            raise NotLent(_unknown(name, project))
        if str(URL(url).origin()) not in [str(URL(one).origin()) for one in found.origins]:
            raise NotLent(
                f'the credential "{name}" is not for {URL(url).origin()}; the operator lists its'
                " origins"
            )
        return {found.header: found.value}

    def secrets(self) -> list[str]:
        """What no message may show."""
        known = self._known.values()
        return [text for one in known for text in (one.secret, one.value.rpartition(" ")[2])]

    def _lent(self, name: Json, project: str) -> Credential | None:
        found = self._known.get(name) if isinstance(name, str) else None
        lent = found and any(fnmatchcase(project, one) for one in found.projects)
        return found if lent else None


def _unknown(name: Json, project: str) -> str:
    return (
        f'the operator lends no credential "{name}" to the project {project}:'
        " [resource_types.http.credentials]"
    )
