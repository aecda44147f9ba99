"""Documents put together from events are those that PyYAML puts together from nodes."""

import json
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.hot.syntax.yaml_reader import MergeKey, NestedTooDeep, load_yaml

PIECES = [
    *"[]{}\"',:#!&*|>-?%\\ \n\t", "a", "b", ": ", "- ", "'a'", "a: ", "---\n", "<<: ", "*a ",
    "&a ", "&b ", "*b ", "!!str ", "!!int ", "!!map ", "!!seq ", "! ", "no", "1", "0x1f", "~", "=",
    "1:30", "2020-01-01", "\n  ", "{a: 1, b: 2}",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=30,
)


class Nodes(yaml.CSafeLoader):
    """PyYAML's own loader, for which dates and ``=`` stay text."""


for _tag in ("timestamp", "value", "merge"):
    _text = yaml.CSafeLoader.yaml_constructors["tag:yaml.org,2002:str"]
    Nodes.add_constructor(f"tag:yaml.org,2002:{_tag}", _text)


def by_nodes(text: str) -> Any:
    return yaml.load(text, Nodes)


def plain(value: Any) -> Any:
    """With the text of what only the two loaders have names for, and of other keys."""
    if isinstance(value, dict):
        return {_key(plain(key)): plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return "<<" if isinstance(value, MergeKey) else value


def _key(key: Any) -> Any:
    return json.dumps(key) if key is None or isinstance(key, int | float) else key


@given(VALUES, st.sampled_from([None, True, False]), st.sampled_from([None, "|", '"', "'"]))
def test_written_documents_are_parsed(value: Any, flow: bool | None, style: str | None) -> None:
    text = yaml.safe_dump(
        value, default_flow_style=flow, default_style=style, allow_unicode=True, sort_keys=False
    )
    assert load_yaml(text, 100, 0) == (by_nodes(text), False)


@settings(max_examples=1000)
@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
def test_any_text_is_parsed_as_by_pyyaml_or_refused(text: str) -> None:
    try:
        wanted = by_nodes(text)
    except (yaml.YAMLError, ValueError, TypeError, IndexError, KeyError, AttributeError):
        wanted = Nodes
    try:
        value = plain(load_yaml(text, 100, 1000)[0])
    except NestedTooDeep:
        return  # PyYAML knows no depth
    except (yaml.YAMLError, ValueError):
        assert wanted is Nodes or any(odd in text for odd in ("<<", "!!", "? "))
        return
    if "no" in text:
        return  # as a key it is text here
    assert repr(value) == repr(plain(wanted))
