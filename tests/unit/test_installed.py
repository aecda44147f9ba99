"""Entry points of what is installed."""

from importlib import metadata

from engine.installed import entry_points


def test_they_are_those_of_the_group_and_looked_for_once() -> None:
    group = "console_scripts"
    found = entry_points(group)
    assert set(found) == set(metadata.entry_points(group=group))
    assert "headgate" in {one.name for one in found}
    assert entry_points(group) is found
    assert entry_points("no such group") == ()
