"""JSON paths into responses, and placeholders in requests."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonpath.match import JSONPathMatch
from jsonpath.selectors import Filter

from engine.types.http.json_paths import (
    MAX_STEPS,
    InvalidPath,
    TooManySteps,
    first_value,
    read_path,
)
from engine.types.http.observation import observation_of
from engine.types.http.remote_object import RemoteObject, differing_paths, with_response
from engine.types.http.requests import PlaceholderError, fill, fill_url, names_in
from engine.words import Json

DOCUMENT: Json = {
    "id": 7,
    "null": None,
    "text": '{"id": 1}',
    "a b": {"c": [1, 2, 3]},
    "conditions": [{"type": "Ready", "status": "True", "at": {"n": 1}}, {"type": "Other"}],
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.id", 7),
        ("$.null", None),
        ("$", DOCUMENT),
        ("$['a b'].c[-1]", 3),
        ("$['a b'].c[1:]", 2),
        ("$.conditions[*].type", "Ready"),
        ("$.conditions[?@.type=='Ready'].status", "True"),
        ("$.conditions[?@.type=='Ready' && @.at.n>0].status", "True"),
        ("$.conditions[?!(@.status)].type", "Other"),
    ],
)
def test_a_path_selects_the_first_value(path: str, value: Json) -> None:
    assert first_value(path, DOCUMENT) == (value,)


@pytest.mark.parametrize("path", ["$.none", "$.id.x", "$.text.id", "$.conditions[9]"])
def test_a_path_can_have_no_value(path: str) -> None:
    assert first_value(path, DOCUMENT) is None


NAMES = st.sampled_from(["a", "b", "0", "-1", "a b", "ü"])
STEPS = st.one_of(NAMES, st.integers(-3, 3))
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(STEPS, max_size=4), DOCUMENTS)
def test_names_and_indexes_select_what_the_library_does(
    steps: list[str | int], document: Json
) -> None:
    path = "$" + "".join(f"[{step!r}]" for step in steps)
    expected = None
    if isinstance(document, dict | list):
        found = next(iter(read_path(path).finditer(document)), None)
        expected = found and (found.obj,)
    assert first_value(path, document) == expected


@pytest.mark.parametrize("document", [None, "x", '{"id": 1}', 7, True])
def test_a_text_is_not_a_document(document: Json) -> None:
    assert first_value("$.id", document) is None


@pytest.mark.parametrize(
    "path",
    [
        "", "id", "/id", "$.", "$.a.", "$..id", "$['a','b']", "$[?@.a[*]]", "$[?$.a=='x']",
        "$[?@.a[?@.b]]", "$[?match(@.a,'(a+)+')]", "$[?search(@.a,'x')]", "$[?length(@.a)==1]",
        "$[?@.a =~ /x/]", "$.a | $.b", "$.~", "^.a",
        "$." + "a" * 200,
    ],
)  # fmt: skip
def test_invalid_and_costly_paths_are_refused(path: str) -> None:
    with pytest.raises(InvalidPath):
        read_path(path)


VALUES: Json = {"id": "a/b?c", "n": 5, "map": {"x": 1}, "up": "..", "empty": "", "none": None}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("${id}", "a/b?c"),
        ("${n}", 5),
        ("${map}", {"x": 1}),
        ("n is ${n}", "n is 5"),
        ("$${id} ${n}", "${id} 5"),
        ("$${id}", "${id}"),
        ({"${n}": ["${map}", 1, None]}, {"5": [{"x": 1}, 1, None]}),
    ],
)
def test_placeholders_are_replaced(template: Json, value: Json) -> None:
    assert fill(template, VALUES) == value


def test_inserted_values_are_not_expanded_again() -> None:
    assert fill("${a} ${b}", {"a": "${b}", "b": "x"}) == "${b} x"


@pytest.mark.parametrize("template", ["${other}", "${none}", "${}", "a ${ id }"])
def test_a_placeholder_without_a_value_is_an_error(template: str) -> None:
    with pytest.raises(PlaceholderError):
        fill(template, VALUES)


@pytest.mark.parametrize("name", ["up", "empty", "none"])
def test_values_that_change_the_path_are_refused(name: str) -> None:
    with pytest.raises(PlaceholderError):
        fill_url(f"https://h/things/${{{name}}}", VALUES)


def test_names_are_found_at_any_depth() -> None:
    template = {"${a}": ["${b}", {"x": "$${c} ${}"}], "y": 1}
    assert sorted(names_in(template)) == ["", "a", "b"]


MANY = {"l": [{"y": 1}] * 90_000}
#: It selects nothing, after five comparisons for each item.
COSTLY = "$.l[?@.x!=0 && @.y==-1 && @.x!=1 && @.x!=2 && @.x!=3].z"


def test_a_filter_on_a_long_list_is_read() -> None:
    items = [{"name": f"n{number}", "size": number} for number in range(15_000)]
    assert first_value("$.l[?@.name=='n14999'].size", {"l": items}) == (14_999,)
    assert first_value("$.l[*].name", {"l": items}) == ("n0",)


def test_one_path_that_takes_too_many_steps_is_refused() -> None:
    with pytest.raises(TooManySteps, match="take more than 100,000 steps"):
        first_value(COSTLY, MANY)


def test_paths_that_are_read_together_have_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: an author could name 100 paths that each take a second."""
    evaluated, resolve = 0, Filter.resolve

    def count(self: Filter, node: JSONPathMatch) -> Iterable[JSONPathMatch]:
        nonlocal evaluated
        evaluated += len(node.obj) if isinstance(node.obj, list) else 1
        return resolve(self, node)

    monkeypatch.setattr(Filter, "resolve", count)
    few = {"l": [{"y": 1}] * 1_000}
    paths = {f"{COSTLY}{number}": 1 for number in range(100)}
    with pytest.raises(TooManySteps):
        observation_of({"compare": paths}, few)
    with pytest.raises(TooManySteps):
        differing_paths(paths, few)
    with pytest.raises(TooManySteps):
        with_response(RemoteObject("7", "key"), {"attributes": {path: path for path in paths}}, few)
    # Each has 100,000 steps, of at least ten for an item.
    assert evaluated < 3 * MAX_STEPS / 10
