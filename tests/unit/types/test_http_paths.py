"""JSON paths into responses, and placeholders in requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.types.http.json_paths import InvalidPath, first_value, read_path
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
