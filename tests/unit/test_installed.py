"""Entry points of what is installed."""

from importlib import metadata

import pytest

from engine.errors import Unavailable
from engine.installed import entry_points, load_plugin, wrong_type_error


def test_entry_points_of_a_group_are_read_once() -> None:
    group = "console_scripts"
    found = entry_points(group)
    assert set(found) == set(metadata.entry_points(group=group))
    assert "headgate" in {one.name for one in found}
    assert entry_points(group) is found
    assert entry_points("no such group") == ()


@pytest.mark.parametrize("value", ["no.such.module:Type", "builtins:nothing", "builtins:type"])
def test_a_plugin_that_cannot_be_created_is_named_with_the_reason(value: str) -> None:
    with pytest.raises(Unavailable, match=f"the tea plug-in one .{value}. does not load: "):
        load_plugin(metadata.EntryPoint("one", value, "teas"), "tea")


def test_a_plugin_of_the_wrong_type_is_named_with_the_expected_one() -> None:
    point = metadata.EntryPoint("one", "builtins:dict", "teas")
    assert load_plugin(point, "tea") == {}
    message = str(wrong_type_error(point, "tea", Unavailable))
    assert "the tea plug-in one (builtins:dict) is not of type Unavailable" in message
    assert "See engine.errors, or uninstall it." in message
