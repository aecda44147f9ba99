"""The quick look at brackets never finds fewer open than YAML's parser does."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.hot.yaml_loader import few_are_open

PIECES = [*"[]{}\"',:#!&*|>-?%\\ \n\t", "a", ": ", "- ", "!<", "'a'", '"a"', "a: ", "---\n", "''"]


def deepest(text: str) -> int:
    """How many brackets are open at once, as far as YAML's parser gets.

    A pair such as ``a: b`` in a list is a map without brackets, and counts for nothing.
    """
    open_: list[int] = []  # where each collection begins, -1 for what has no bracket
    most = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                at = event.start_mark.index if event.start_mark else 0
                bracket = event.flow_style and text[at : at + 1] in ("[", "{") and at not in open_
                open_.append(at if bracket else -1)
                most = max(most, sum(one >= 0 for one in open_))
            elif isinstance(event, yaml.CollectionEndEvent):
                open_.pop()
    except (yaml.YAMLError, ValueError):
        pass
    return most


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_depth_is_overlooked(text: str) -> None:
    depth = deepest(text)
    assert depth == 0 or not few_are_open(text, depth - 1)


@pytest.mark.parametrize(
    "trick",
    [
        "[!<]> ",  # a tag that holds a bracket
        '[a"b , "c ] ", ',  # a quote in the midst of a token
        '[a "b , "c ] ", ',
        "[a'b , 'c ] ', ",
        "[ # ]\n",
        '["]", ',
        "{a: [']'], b: ",
    ],
)
def test_what_looks_closed_and_is_not_is_counted(trick: str) -> None:
    assert not few_are_open(trick * 100, 99)


def test_an_honest_template_is_seen_through() -> None:
    assert few_are_open('a: {list_join: [",", [a, {get_param: b}, {if: [c, 1, 2]}]]}\n' * 1000, 5)


def test_depth_counts_though_every_bracket_is_closed() -> None:
    deep = "[" * 50 + "a" + "]" * 50
    assert deepest(deep) == 50
    assert not few_are_open(deep, 49)
    assert few_are_open(deep, 50)
