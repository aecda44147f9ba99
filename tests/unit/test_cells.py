"""The placement of projects in cells."""

import pytest

from engine.cells import CellPlacement, highest_ranked, merge_histories, possible_cells
from engine.errors import Conflict


def placement(revision: int, *cells: str, **projects: str) -> CellPlacement:
    return CellPlacement(revision, cells, cells, projects)


def test_the_ranks_are_those_of_earlier_releases() -> None:
    """Another hash would look for every project in another cell."""
    chosen = "".join(highest_ranked(f"p{number}", "abcd") or "" for number in range(20))
    assert chosen == "dccccbcacbddbdcabcac"


def test_histories_are_put_together_by_revision() -> None:
    first, second = placement(1, "a"), placement(2, "a", "b")
    assert merge_histories([[second, first], [first], []]) == [second, first]


def test_one_revision_has_one_content() -> None:
    with pytest.raises(Conflict, match="raise revision with each change"):
        merge_histories([[placement(1, "a")], [placement(1, "a", "b")]])


def test_no_cell_is_forgotten() -> None:
    with pytest.raises(Conflict, match=r"lacks a of an earlier revision"):
        merge_histories([[placement(2, "b")], [placement(1, "a", "b")]])


def test_a_project_can_be_where_each_revision_places_it() -> None:
    history = [placement(3, "a", "b", p="b"), placement(2, "a", "b", p="a"), placement(1, "a")]
    assert possible_cells(history, "p") == ["b", "a"]
    nowhere = CellPlacement(1, ("a",), (), {})
    assert possible_cells([nowhere], "p") == []
