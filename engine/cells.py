"""Which cell has a project.

A cell is a complete database with its own engines and dispatchers. A placement is one revision of
the operator's assignment of projects to cells: by name, or else by rendezvous hashing, so that a
further cell receives its share of the projects and no project changes between the others. Projects
that exist stay where they are when the assignment changes; the databases record them.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import Conflict
from engine.words import Json


@dataclass(frozen=True, slots=True)
class CellPlacement:
    """One revision of the assignment of projects to cells.

    cells: the names of all cells. hashed: those that share the projects that are in no other list.
    projects: the cells of projects by name.
    """

    revision: int
    cells: tuple[str, ...]
    hashed: tuple[str, ...]
    projects: Mapping[str, str]

    def cell_of(self, project: str) -> str | None:
        """The cell in which a new project is created; None: in none."""
        if project in self.projects:
            return self.projects[project]
        return highest_ranked(project, self.hashed)

    def as_document(self) -> dict[str, Json]:
        """As it is stored; the same for equal placements."""
        return {
            "revision": self.revision,
            "cells": sorted(self.cells),
            "hashed": sorted(self.hashed),
            "projects": dict(sorted(self.projects.items())),
        }


def read_placement(document: Mapping[str, Json]) -> CellPlacement:
    """The placement of a document of `as_document`."""
    return CellPlacement(
        document["revision"],
        tuple(document["cells"]),
        tuple(document["hashed"]),
        document["projects"],
    )


def merge_histories(histories: Iterable[Sequence[CellPlacement]]) -> list[CellPlacement]:
    """All revisions of several histories, the newest first. Raises Conflict if two of them differ
    in a revision, or if a cell of an earlier revision is missing in the newest."""
    merged: dict[int, CellPlacement] = {}
    for placement in (one for history in histories for one in history):
        known = merged.setdefault(placement.revision, placement)
        if known.as_document() != placement.as_document():
            raise Conflict(
                f"revision {placement.revision} of [cells] differs from the one that is stored",
                place="[cells] revision",
                remedy="Use the same [cells] for all processes; raise revision with each change",
                code="OtherPlacement",
            )
    history = [merged[revision] for revision in sorted(merged, reverse=True)]
    earlier = {cell for placement in history[1:] for cell in placement.cells}
    if history and (missing := sorted(earlier - {*history[0].cells})):
        raise Conflict(
            f"[cells] lacks {', '.join(missing)} of an earlier revision",
            place="[cells] databases",
            remedy="Keep each cell in the list, with new_projects = false if it gets no new ones",
            code="CellMissing",
        )
    return history


def highest_ranked(project: str, cells: Iterable[str]) -> str | None:
    """The cell with the highest rank for a project; None: there are no cells. The rank depends on
    the two names alone, so it is the same in every process and release."""
    return max(cells, key=lambda cell: (_rank(project, cell), cell), default=None)


def _rank(project: str, cell: str) -> bytes:
    # No name of a cell contains a NUL character.
    return hashlib.sha256(f"{cell}\0{project}".encode()).digest()


def possible_cells(history: Sequence[CellPlacement], project: str) -> list[str]:
    """The cells in which a project can have been created, each once, in the order of `history`.

    history: all revisions, the newest first.
    """
    cells = (placement.cell_of(project) for placement in history)
    return list(dict.fromkeys(cell for cell in cells if cell is not None))
