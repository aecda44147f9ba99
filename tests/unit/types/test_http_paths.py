"""JSON paths into responses, and placeholders in requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from engine.types.http.json_paths import InvalidPath, first, read_path
from engine.types.http.placeholders import PlaceholderError, filled, filled_url, names_in
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
def test_a_path_leads_to_the_first_value(path: str, value: Json) -> None:
    assert first(path, DOCUMENT) == (value,)


@pytest.mark.parametrize("path", ["$.none", "$.id.x", "$.text.id", "$.conditions[9]"])
def test_a_path_may_lead_nowhere(path: str) -> None:
    assert first(path, DOCUMENT) is None


@pytest.mark.parametrize("document", [None, "x", '{"id": 1}', 7, True])
def test_a_text_is_no_document(document: Json) -> None:
    assert first("$.id", document) is None


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
def test_placeholders_are_filled(template: Json, value: Json) -> None:
    assert filled(template, VALUES) == value


def test_what_was_put_in_is_not_read_again() -> None:
    assert filled("${a} ${b}", {"a": "${b}", "b": "x"}) == "${b} x"


@pytest.mark.parametrize("template", ["${other}", "${none}", "${}", "a ${ id }"])
def test_without_a_value_it_is_not_filled(template: str) -> None:
    with pytest.raises(PlaceholderError):
        filled(template, VALUES)


@pytest.mark.parametrize("name", ["up", "empty", "none"])
def test_what_leads_elsewhere_is_no_part_of_an_address(name: str) -> None:
    with pytest.raises(PlaceholderError):
        filled_url(f"https://h/things/${{{name}}}", VALUES)


def test_names_are_found_at_any_depth() -> None:
    template = {"${a}": ["${b}", {"x": "$${c} ${}"}], "y": 1}
    assert sorted(names_in(template)) == ["", "a", "b"]


@given(st.text(min_size=1))
def test_a_value_stays_one_part_of_an_address(value: str) -> None:
    if value in (".", "..") or any("\ud800" <= one <= "\udfff" for one in value):
        return
    url = URL(filled_url("https://h.example.org/things/${id}/rest?q=${id}&z=1", {"id": value}))
    assert url.host == "h.example.org" and url.raw_path.startswith("/things/")
    assert len(url.raw_parts) == 4 and url.raw_parts[-1] == "rest"
    assert url.parts[2] == value and url.fragment == ""
    assert dict(url.query) == {"q": value, "z": "1"}
