"""Settings of API processes that serve several databases, the cells."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from engine.cells import CellPlacement
from hub.settings.database_urls import check_pooler, check_primary, check_replicas
from hub.settings.types import Section, Texts, invalid

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise invalid(
            "must be a name such as eu-1: 1 to 63 lowercase letters, digits and hyphens, the first"
            " and the last one no hyphen"
        )
    return name


CellName = Annotated[str, AfterValidator(_check_name)]


class CellDatabase(Section):
    """One cell. projects: which are in it. new_projects: it takes part in the hashing of those
    that no cell names."""

    name: CellName
    url: SecretStr
    pooler_url: SecretStr = SecretStr("")
    read_url: SecretStr = SecretStr("")
    projects: Texts = ()
    new_projects: bool = True

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        if not url.get_secret_value():
            reason = "is empty, and a cell has no embedded database"
            raise invalid(reason, "Write postgresql://USER@HOST/DATABASE")
        return check_primary(url)

    @field_validator("pooler_url")
    @classmethod
    def _check_pooler_url(cls, url: SecretStr) -> SecretStr:
        return check_pooler(url)

    @field_validator("read_url")
    @classmethod
    def _check_read_url(cls, url: SecretStr) -> SecretStr:
        return check_replicas(url)


class CellsSection(Section):
    revision: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1
    hashing: bool = True
    databases: tuple[CellDatabase, ...] = ()

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        """Each cell has its own name, database and projects."""
        names: set[str] = set()
        urls: dict[str, str] = {}
        projects: dict[str, str] = {}
        for number, one in enumerate(self.databases):
            place = ("databases", number)
            if one.name in names:
                raise invalid(f'"{one.name}" is used twice', "Choose another name", *place, "name")
            names.add(one.name)
            url = one.url.get_secret_value()
            if url in urls:
                reason = f'is also the database of the cell "{urls[url]}"'
                raise invalid(reason, "Give each cell its own database", *place, "url")
            urls |= {url: one.name}
            for project in one.projects:
                if project in projects:
                    reason = f'"{project}" is also in the cell "{projects[project]}"'
                    raise invalid(reason, "Leave it in one of them", *place, "projects")
            projects |= dict.fromkeys(one.projects, one.name)
        return self

    @property
    def placement(self) -> CellPlacement:
        """The assignment of projects to these cells."""
        return CellPlacement(
            self.revision,
            tuple(one.name for one in self.databases),
            tuple(one.name for one in self.databases if one.new_projects and self.hashing),
            {project: one.name for one in self.databases for project in one.projects},
        )
