"""Credentials of the operator that templates use by name, without access to their content.

Headgate sends a credential only to the origins and for the projects that the operator lists, so a
template cannot send one to another server.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from yarl import URL

from engine.hot.schema.type_schema import TypeSchema
from engine.types.custom_constraints import CustomConstraint, ValidationContext
from engine.words import Json

CONSTRAINT = "headgate.credential"


@dataclass(frozen=True, slots=True)
class Credential:
    """An authentication header. secret: the secret part of its value. origins: such as
    ``https://api.example.org``. projects: patterns."""

    header: str
    value: str = field(repr=False)
    secret: str = field(repr=False)
    origins: Sequence[str]
    projects: Sequence[str]


class CredentialDenied(Exception):
    """The credential may not be used here; the text is the reason."""


class Credentials(CustomConstraint):
    """The configured credentials by name. As a constraint: whether the project may use one."""

    name = CONSTRAINT

    def __init__(self, known: Mapping[str, Credential]) -> None:
        self._known = known

    def validate(self, value: Json, context: ValidationContext) -> str | None:
        return (
            None if self._find_allowed(value, context.project) else _unknown(value, context.project)
        )

    def headers(self, name: str, project: str, url: str) -> dict[str, str]:
        """The headers of a request to this URL. Raises CredentialDenied."""
        found = self._find_allowed(name, project)
        if found is None:
            raise CredentialDenied(_unknown(name, project))
        if str(URL(url).origin()) not in [str(URL(one).origin()) for one in found.origins]:
            raise CredentialDenied(
                f'the credential "{name}" is not for {URL(url).origin()}; the operator lists its'
                " origins"
            )
        return {found.header: found.value}

    def secrets(self) -> list[str]:
        """The values that every message masks."""
        known = self._known.values()
        return [text for one in known for text in (one.secret, one.value.rpartition(" ")[2])]

    def _find_allowed(self, name: Json, project: str) -> Credential | None:
        found = self._known.get(name) if isinstance(name, str) else None
        allowed = found and any(fnmatchcase(project, one) for one in found.projects)
        return found if allowed else None


def credential_properties(schema: TypeSchema) -> Iterator[str]:
    """The properties of a type that name a credential of the operator."""
    for key, known in schema.properties.items():
        if any(one.name == CONSTRAINT for one in known.constraints):
            yield key


def _unknown(name: Json, project: str) -> str:
    return (
        f'the operator provides no credential "{name}" for project {project}:'
        " [resource_types.http.credentials]"
    )
