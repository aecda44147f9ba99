"""Which snapshot is meant."""

import pytest

from hub.cli.client import Refused
from hub.cli.file_references import Unreadable
from hub.cli.snapshots import chosen

ONE = {"id": "aa11", "name": "good"}
TWO = {"id": "aa22", "name": "good"}
THREE = {"id": "bb33", "name": "aa11"}


@pytest.mark.parametrize("which", ["bb33", "b", "BB", "aa22", "aa2"])
def test_by_id_or_its_beginning(which: str) -> None:
    assert chosen([ONE, TWO, THREE], which)["id"].startswith(which.lower())


def test_by_name_before_the_beginning_of_an_id() -> None:
    assert chosen([TWO, {"id": "cc44", "name": "aa"}], "aa")["id"] == "cc44"


@pytest.mark.parametrize("which", ["good", "aa11", "aa"])
def test_what_may_mean_several_is_refused(which: str) -> None:
    with pytest.raises(Unreadable, match=r"means 2 snapshots: .*use an ID"):
        chosen([ONE, TWO, THREE], which)


@pytest.mark.parametrize("which", ["", "x", "goo"])
def test_what_is_none_is_refused(which: str) -> None:
    with pytest.raises(Refused, match="headgate stack snapshot list"):
        chosen([ONE, TWO, THREE], which)
