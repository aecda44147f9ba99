"""Rendezvous hashing of projects over cells."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.cells import CellPlacement, highest_ranked, possible_cells, read_placement

NAMES = st.text("abc-1", min_size=1, max_size=6)
CELLS = st.lists(NAMES, min_size=1, max_size=8, unique=True)
PROJECTS = st.text(max_size=300)
#: Enough for shares, and quick.
MANY = [f"project-{number}" for number in range(300)]


def placement(revision: int, *cells: str, **projects: str) -> CellPlacement:
    return CellPlacement(revision, cells, cells, projects)


@given(cells=CELLS, project=PROJECTS, order=st.randoms())
def test_a_project_has_one_cell_in_any_order(cells: list[str], project: str, order: object) -> None:
    chosen = highest_ranked(project, cells)
    order.shuffle(cells)  # type: ignore[attr-defined]
    assert chosen in cells
    assert highest_ranked(project, cells) == chosen


@given(cells=CELLS, new=NAMES, project=PROJECTS)
def test_an_added_cell_takes_projects_and_moves_none_between_others(
    cells: list[str], new: str, project: str
) -> None:
    before = highest_ranked(project, cells)
    assert highest_ranked(project, [*cells, new]) in {before, new}


@given(cells=st.lists(NAMES, min_size=2, max_size=8, unique=True), project=PROJECTS)
def test_a_removed_cell_moves_only_its_own_projects(cells: list[str], project: str) -> None:
    before = highest_ranked(project, cells)
    after = highest_ranked(project, cells[1:])
    assert after == before or before == cells[0]


@given(cells=st.lists(NAMES, min_size=2, max_size=8, unique=True))
def test_each_cell_has_about_its_share(cells: list[str]) -> None:
    """So an added cell takes about 1/n: the share of the last one."""
    shares = Counter(highest_ranked(project, cells) for project in MANY)
    expected = len(MANY) / len(cells)
    # Six standard deviations of a fair choice.
    deviation = (expected * (1 - 1 / len(cells))) ** 0.5
    assert all(abs(shares[cell] - expected) < 6 * deviation for cell in cells)


@given(cells=CELLS, new=NAMES, project=PROJECTS)
def test_a_project_is_looked_for_in_its_earlier_cell_too(
    cells: list[str], new: str, project: str
) -> None:
    history = [placement(2, *cells, new), placement(1, *cells)]
    possible = possible_cells(history, project)
    assert possible[0] == highest_ranked(project, [*cells, new])
    assert highest_ranked(project, cells) in possible
    assert len(possible) <= 2


@given(cells=CELLS, project=PROJECTS, revision=st.integers(1, 9))
def test_a_named_project_is_in_its_cell(cells: list[str], project: str, revision: int) -> None:
    named = CellPlacement(revision, tuple(cells), (), {project: cells[0]})
    assert named.cell_of(project) == cells[0]
    assert named.cell_of(f"{project}x") is None
    assert read_placement(named.as_document()).as_document() == named.as_document()
