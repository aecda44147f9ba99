"""Entry points of what is installed."""

from importlib import metadata

import pytest

from engine.errors import Unavailable
from engine.installed import entry_points, make, misfit


def test_they_are_those_of_the_group_and_looked_for_once() -> None:
    group = "console_scripts"
    found = entry_points(group)
    assert set(found) == set(metadata.entry_points(group=group))
    assert "headgate" in {one.name for one in found}
    assert entry_points(group) is found
    assert entry_points("no such group") == ()


@pytest.mark.parametrize("value", ["no.such.module:Type", "builtins:nothing", "builtins:type"])
def test_what_cannot_be_made_is_named_with_the_reason(value: str) -> None:
    with pytest.raises(Unavailable, match=f"the tea plug-in one .{value}. does not load: "):
        make(metadata.EntryPoint("one", value, "teas"), "tea")


def test_a_misfit_is_named_with_what_it_should_be() -> None:
    point = metadata.EntryPoint("one", "builtins:dict", "teas")
    assert make(point, "tea") == {}
    said = str(misfit(point, "tea", Unavailable))
    assert "the tea plug-in one (builtins:dict) is not of type Unavailable" in said
    assert "See engine.errors, or uninstall it." in said
