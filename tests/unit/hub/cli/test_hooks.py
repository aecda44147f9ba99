"""Which hook is meant."""

import pytest

from hub.cli.client import Refused
from hub.cli.files import Unreadable
from hub.cli.hooks import chosen

HOOKS = [
    {"id": "aa11-0", "stack_name": "web", "path": "db", "point": "pre-create"},
    {"id": "aa22-0", "stack_name": "web", "path": "app", "point": "pre-create"},
    {"id": "bb33-0", "stack_name": "web", "path": "db", "point": "post-create"},
    {"id": "cc44-0", "stack_name": "old", "path": "a:b", "point": "pre-delete"},
]


@pytest.mark.parametrize(
    ("which", "found"),
    [
        ("aa1", "aa11-0"),
        ("AA1", "aa11-0"),
        ("bb", "bb33-0"),
        ("web:app", "aa22-0"),
        ("web:db:post-create", "bb33-0"),
        ("old:a:b", "cc44-0"),
        ("old:a:b:pre-delete", "cc44-0"),
    ],
)
def test_a_hook_is_found_by_the_beginning_of_its_id_or_by_its_place(which: str, found: str) -> None:
    assert chosen(HOOKS, which)["id"] == found


@pytest.mark.parametrize("which", ["aa", "web:db"])
def test_what_means_several_is_refused_with_their_names(which: str) -> None:
    with pytest.raises(Unreadable, match="matches 2 waiting hooks: web:db:pre-create"):
        chosen(HOOKS, which)


@pytest.mark.parametrize("which", ["", "zz", "web", "web:", "web:d", "web:db:pre", "old:a"])
def test_what_means_none_is_refused(which: str) -> None:
    with pytest.raises(Refused, match="headgate hook list"):
        chosen(HOOKS, which)
