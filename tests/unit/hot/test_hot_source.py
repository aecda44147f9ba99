"""Parsing of documents, and messages about invalid ones."""

import pytest

from engine.errors import Invalid
from engine.hot.syntax.document import DEFAULT_LIMITS, DocumentLimits, check_document, read_document


def message_of(text: str, limits: DocumentLimits = DEFAULT_LIMITS) -> str:
    with pytest.raises(Invalid) as caught:
        read_document(text, "template", limits)
    return str(caught.value)


def test_a_date_stays_text_and_yes_is_a_boolean() -> None:
    document = read_document("heat_template_version: 2021-04-16\na: yes\nb: off\n", "template")
    assert document == {"heat_template_version": "2021-04-16", "a": True, "b": False}


def test_json_is_parsed_as_json() -> None:
    assert read_document('{"a": [1, 2.5, null, "\\u00e9"]}', "t") == {"a": [1, 2.5, None, "é"]}


def test_yaml_in_braces_is_parsed() -> None:
    assert read_document("{a: 1, b: [x]}", "t") == {"a": 1, "b": ["x"]}


def test_tags_determine_the_type_of_a_value() -> None:
    text = "a: !!str 5\nb: !!int '5'\nc: !!float 1\nd: ! yes\ne: !!map {f: !!seq [!!null '']}\n"
    wanted = {"a": "5", "b": 5, "c": 1.0, "d": True, "e": {"f": [None]}}
    assert read_document(text, "t") == wanted


def test_yaml_1_1_booleans_are_text_as_keys() -> None:
    assert read_document("=: =\non: on\n'no': no\n? yes\n: &y yes\nc: *y\n", "t") == {
        "=": "=", "on": True, "no": False, "yes": True, "c": True,
    }  # fmt: skip


def test_own_entries_have_priority_over_merge_keys() -> None:
    text = "a: &a {x: 1, z: 9}\nb: {<<: *a, y: 2, x: 3}\n"
    assert read_document(text, "t")["b"] == {"x": 3, "y": 2, "z": 9}


def test_the_first_of_several_merged_maps_wins() -> None:
    text = "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n"
    assert read_document(text, "t")["c"] == {"x": 1, "y": 2}


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"{new}: &{new} [{','.join(['*' + old] * 9)}]"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = f"a: &a {{{','.join(f'x{n}: 1' for n in range(101))}}}\n" + "\n".join(
    f"b{n}: {{<<: *a}}" for n in range(100)
)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: {{ b }}", 'Put the value in quotes if it is text that begins with "{{".'),
        ("", "its first line is the version, such as heat_template_version: 2021-04-16."),
        ("# nothing", "Template format version not found."),
        ("a: [", "in line 1, column 5"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 'b.c: The key "c" is given twice in the template in line 4'),
        ('{"a": {"b": 1,\n "b": 2}}', 'a.b: The key "b" is given twice'),
        ("- 1", "The template is not a JSON object or YAML mapping."),
        ("[1]", "The template is not a JSON object or YAML mapping."),
        ("text", "Write its sections as keys, such as resources."),
        ("[" * 100_000, "nested deeper than 64"),
        ("- " * 100_000, "nested deeper than 64"),
        ("? " * 100_000, "found a key that is a list or a map in line 1, column 3"),
        ("a: " + "[" * 63, "did not find expected node content"),
        ("a: " + "[" * 64, "nested deeper than 64"),
        ("a: <<", "a: A value of the kind MergeKey cannot be used here"),
        ("a: {<<: 1}", "while reading a merge key expected a map in line 1"),
        ("a: {<<: [b]}", "while reading a merge key expected a map in line 1"),
        ("a: &a {b: 1, <<: *a}", "a map cannot merge itself in line 1"),
        ("a: &a {b: {<<: *a}}", "a map cannot merge itself in line 1"),
        ("a: &a {}\nb: {<<: *a, <<: *a}", 'b.<<: The key "<<" is given twice'),
        ("a: *b", "found undefined alias 'b' in line 1, column 4"),
        ("a: &b 1\nc: &b 2", "found duplicate anchor 'b'"),
        ("{? {a: 1} : 2}", "found a key that is a list or a map"),
        ("a: &b []\n*b : 1", "found a key that is a list or a map in line 2, column 1"),
        ("a: !!seq x", "expected a seq, but found a scalar in line 1, column 4"),
        ("a: !!map [x]", "could not determine a constructor"),
        ("a:\n- {b: 1}\n- c: [1, {d: 1,\n  'd': 2}]", 'a[1].c[1].d: The key "d" is given twice'),
        ('{"a":' * 100 + "1" + "}" * 100, "nested deeper than 64"),
        ("a: &a {b: *a}", "contains itself"),
        ("1: x", "The key 1 is not text"),
        ("a: {b: {null: x}}", "a.b.null: The key null is not text"),
        ("a: .nan", "which JSON cannot represent"),
        ("a: .inf", "which JSON cannot represent"),
        ('{"a": NaN}', "the value NaN, which JSON cannot represent"),
        ('{"a": 1e999}', "which JSON cannot represent"),
        ("a: " + "9" * 30, "The number is too large"),
        ("a: " + "9" * 5000, "Error parsing template"),
        ("a: !!int ''", "this is not of the kind int in line 1, column 4"),
        ("a: !!bool x", "this is not of the kind bool in line 1"),
        ("a: !!float x", "this is not of the kind float in line 1"),
        ("a: !!str {b: 1}", "in line 1, column 4"),
        ("? [1]\n: 2", "found a key that is a list or a map in line 1, column 3"),
        ("a: 1" + ":59" * 2_000, "a number has 6001 characters; write it as text in line 1"),
        ("a: !!set {b}", "in line 1, column 4"),
        ("a: !!binary aGk=", "could not determine a constructor"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ('{"a": ["\\u0000"]}', "a[0]: Text with a NUL character"),
        ('{"a": "\\ud800"}', "a: The text contains half a character"),
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("a: '" + "x" * 600_000 + "'", "the limit is 524288"),
        (BOMB, "more than 200000 values"),
        (MERGE_BOMB, "merge keys add too many entries"),
    ],
)
def test_invalid_documents_are_refused_with_the_reason(text: str, part: str) -> None:
    assert part in message_of(text)


def test_a_document_with_text_keys_is_returned_unchanged() -> None:
    document = {"a": {"b": [1, "x", None, True]}}
    assert check_document(document, "template") is document


@pytest.mark.parametrize("value", [{"a": {1: 2}}, {"a": float("nan")}, {"a": {2**70}}, [], None])
def test_a_parsed_document_is_checked(value: object) -> None:
    with pytest.raises(Invalid):
        check_document(value, "template")


def test_limits_of_documents_can_be_changed() -> None:
    assert "more than 3 values" in message_of("a: [1, 2, 3]", DocumentLimits(max_nodes=3))
    assert "deeper than 1" in message_of("a: [1]", DocumentLimits(max_depth=1))


@pytest.mark.parametrize("text", ["# only a comment\n", "---\n", "null"])
def test_an_environment_without_content_is_empty_as_in_heat(text: str) -> None:
    assert read_document(text, "environment") == {}
    assert read_document(text, "environment env.yaml") == {}
