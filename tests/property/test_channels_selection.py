"""Which events a subscription wants, against the plain definition."""

from dataclasses import replace
from fnmatch import fnmatchcase
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.selection import (
    DELIVERED,
    EVERY_PROJECT,
    Selection,
    Traits,
    is_for,
    matches,
    subject_of,
)

words = st.text("ab.*", max_size=4)
globs = st.lists(st.text("ab.*?", max_size=4), max_size=3)
maybe = st.none() | words
stacks = st.sampled_from([UUID(int=7), UUID(int=8)])
paths = st.sampled_from(["", "a", "a/b", "ab"])
selections = st.just(Selection()) | st.builds(
    Selection, globs, globs, globs, globs, globs, globs, st.none() | stacks, st.booleans()
)
all_traits = st.builds(
    Traits,
    st.sampled_from(["p", "q"]),
    words,
    stacks,
    maybe,
    st.none() | stacks,
    maybe,
    paths,
    maybe,
    maybe,
    maybe,
    tags=st.lists(words, max_size=2),
)
ME = UUID(int=1)


def plain(selection: Selection, traits: Traits) -> bool:
    names = [name for name in (traits.stack_path, traits.resource_name) if name]
    path = "/".join(names) if traits.resource_name else None
    requested = (
        (selection.events, [traits.type]),
        (selection.stacks, [traits.stack_name, traits.root_name]),
        (selection.resources, [traits.resource_name, path]),
        (selection.types, [traits.resource_type]),
        (selection.points, [traits.point]),
        (selection.tags, [*traits.tags]),
    )
    around = [traits.root_id] if selection.nested else []
    root = selection.nested or traits.root_id is None
    named = selection.stack_id in (traits.stack_id, *around)
    return (root if selection.stack_id is None else named) and all(
        any(value is not None and fnmatchcase(value, glob) for glob in wanted for value in values)
        for wanted, values in requested
        if wanted
    )


@given(selections, all_traits)
def test_every_list_must_match_and_an_empty_one_does(selection: Selection, traits: Traits) -> None:
    assert matches(selection, traits) is plain(selection, traits)


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ('web["a"]', True),
        ("web-a", True),
        ("web", True),
        ("web-*", True),
        ('n/web["a"]', True),
        ("n/web-a", True),
        ('*/web["a"]', True),
        ("n/web-b", False),
        ('web["b"]', False),
    ],
)
def test_a_resource_with_a_key_is_selected_by_each_of_its_names(glob: str, expected: bool) -> None:
    of = Traits("p", "t", UUID(int=7), stack_path="n", resource_name='web["a"]')
    assert matches(Selection(resources=[glob]), of) is expected


@given(all_traits)
def test_an_empty_selection_matches_everything(traits: Traits) -> None:
    assert matches(Selection(), traits)


@given(selections, all_traits, st.sampled_from(["p", "q", EVERY_PROJECT]))
def test_a_subscription_gets_no_events_of_other_projects(
    selection: Selection, traits: Traits, project: str
) -> None:
    expected = is_for(ME, project, selection, traits)
    assert expected is (project in (traits.project, EVERY_PROJECT) and matches(selection, traits))


@given(all_traits)
def test_a_subscription_gets_no_events_of_itself(traits: Traits) -> None:
    event = replace(traits, about=subject_of({"subscription": str(ME)}))
    assert not is_for(ME, EVERY_PROJECT, Selection(), event)
    assert is_for(ME, EVERY_PROJECT, Selection(), replace(event, type=DELIVERED))
    assert is_for(UUID(int=2), EVERY_PROJECT, Selection(), event)


def test_case_counts() -> None:
    traits = Traits("p", "headgate.hook.waiting", ME, "Web")
    assert matches(Selection(events=["headgate.hook.*"], stacks=["W*"]), traits)
    assert not matches(Selection(stacks=["w*"]), traits)


NESTED = Selection(stack_id=UUID(int=7), root_id=UUID(int=9), path="web")


@pytest.mark.parametrize(
    ("stack", "root", "path", "expected"),
    [
        (7, 9, "web", True),
        (8, 9, "web/0", True),
        (8, 9, "web/0/deep", True),
        (8, 9, "website", False),
        (8, 9, "db", False),
        (8, 7, "web/0", False),
        (9, None, "", False),
    ],
)
def test_a_nested_stack_can_be_selected_with_its_nested_stacks(
    stack: int, root: int | None, path: str, expected: bool
) -> None:
    root_id = None if root is None else UUID(int=root)
    traits = Traits("p", "t", UUID(int=stack), "s", root_id=root_id, stack_path=path)
    assert matches(NESTED, traits) is expected
    alone = replace(NESTED, nested=False)
    assert matches(alone, traits) is (stack == 7)
