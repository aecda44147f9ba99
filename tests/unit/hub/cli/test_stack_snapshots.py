"""Selection of a snapshot by name or ID."""

import pytest

from headgate.errors import RequestError
from hub.cli.commands.stack_snapshots import select_snapshot
from hub.cli.inputs.files import InputError

ONE = {"id": "aa11", "name": "good"}
TWO = {"id": "aa22", "name": "good"}
THREE = {"id": "bb33", "name": "aa11"}


@pytest.mark.parametrize("which", ["bb33", "b", "BB", "aa22", "aa2"])
def test_a_snapshot_is_found_by_its_id_or_a_prefix(which: str) -> None:
    assert select_snapshot([ONE, TWO, THREE], which)["id"].startswith(which.lower())


def test_a_name_has_priority_over_a_prefix_of_an_id() -> None:
    assert select_snapshot([TWO, {"id": "cc44", "name": "aa"}], "aa")["id"] == "cc44"


@pytest.mark.parametrize("which", ["good", "aa11", "aa"])
def test_an_ambiguous_snapshot_is_refused(which: str) -> None:
    with pytest.raises(InputError, match=r"matches 2 snapshots: .*use an ID"):
        select_snapshot([ONE, TWO, THREE], which)


@pytest.mark.parametrize("which", ["", "x", "goo"])
def test_an_unknown_snapshot_is_refused(which: str) -> None:
    with pytest.raises(RequestError, match="headgate stack snapshot list"):
        select_snapshot([ONE, TWO, THREE], which)
