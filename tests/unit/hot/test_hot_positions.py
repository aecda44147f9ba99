"""Positions of places in a text, quoted lines, and explanations of syntax errors."""

import json
import tracemalloc

import pytest

from engine.errors import ENVIRONMENT, TEMPLATE, Finding, Invalid
from engine.hot.syntax.document import read_document
from engine.hot.syntax.positions import MAX_LEVELS, find_positions, iterate_children
from engine.hot.syntax.source_lines import locate

YAML = """\
# a comment
heat_template_version: 2018-08-31
resources:
  web.one:   # a key with a dot
    type: OS::Nova::Server
    properties:
      networks:
      - {network: a, fixed_ip: 1}
      - network: &b b
        80: *b
      "quoted key": {<<: {x: 1}}
  web: {one: {type: x}}
"""


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("resources", (3, 1)),
        ("resources.web.one", (12, 9)),
        ("resources.web.one.type", (12, 15)),
        ("resources.web.one.properties.networks[0].fixed_ip", (8, 22)),
        ("resources.web.one.properties.networks[1]", (9, 9)),
        ("resources.web.one.properties.networks[1].80", (10, 9)),
        ("resources.web.one.properties.networks[7]", (7, 7)),
        ("resources.web.one.properties.quoted key.x", (11, 7)),
        ("resources.web.one.properties.networks[1].network.deeper", (9, 9)),
        ("resources.db", (3, 1)),
    ],
)
def test_the_position_of_a_place(place: str, expected: tuple[int, int]) -> None:
    position = find_positions(YAML, [place])[place]
    assert (position.line, position.column) == expected


def test_a_place_without_a_beginning_in_the_text_has_no_position() -> None:
    assert find_positions(YAML, ["", "outputs.x", "[0]", "..", "a[", "a]b"]) == {}


@pytest.mark.parametrize("indent", [None, 0, 1, 4])
def test_positions_in_json_are_those_in_yaml(indent: int | None) -> None:
    document = {"a": {"b [x": [1, {'c\\"{': "}, \n"}], "d": None}, "e": [[], [[True]]]}
    text = json.dumps(document, indent=indent)
    places = ["a", "a.b [x[0]", 'a.b [x[1].c\\"{', "a.d", "e[1][0][0]"]
    found = find_positions(text, places)
    assert [*found] == places
    assert found == find_positions(f"# YAML now\n{text}", places) or {
        (one.line + 1, one.column) for one in found.values()
    } == {(one.line, one.column) for one in find_positions(f"# YAML now\n{text}", places).values()}


@pytest.mark.parametrize("text", ["a: [", "a: 'x", "{", "", "\t", "- " * 100_000])
def test_a_text_that_cannot_be_parsed_has_the_positions_before_the_error(text: str) -> None:
    assert find_positions(text, ["c", "b[0]"]) == {}


def test_memory_and_time_do_not_grow_with_the_length_of_paths() -> None:
    """A path of 64 long keys above 20,000 values: all paths together would have 10 GB."""
    keys = [f"{number:02}" + "k" * 6_000 for number in range(60)]
    text = "".join(f"{' ' * depth}{key}:\n" for depth, key in enumerate(keys))
    text += "".join(f"{' ' * 60}a{number}: 1\n" for number in range(2_000))
    places = [".".join(keys)[:500] + str(number) for number in range(100)]
    tracemalloc.start()
    try:
        find_positions(text, places)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000


@pytest.mark.parametrize("is_json", [False, True])
def test_collections_are_read_to_a_limited_depth(is_json: bool) -> None:
    """The YAML scanner takes longer for each token the deeper it is."""
    found = list(iterate_children("[" * 10_000, is_json=is_json))
    assert len(found) == MAX_LEVELS


def test_lines_are_quoted_with_a_caret() -> None:
    (one,) = locate([Finding("resources.web.one.type", "no", "")], {TEMPLATE: YAML})
    assert (one.file, one.line, one.column) == (TEMPLATE, 12, 15)
    assert one.quote == "  web: {one: {type: x}}\n              ^"


def test_a_place_that_names_a_file_has_the_position_of_its_resource() -> None:
    (one,) = locate([Finding("resources.web.one<in.yaml>", "no", "")], {TEMPLATE: YAML})
    assert (one.line, one.column) == (12, 9)


def test_long_lines_are_shortened_around_the_column() -> None:
    text = json.dumps({"x" * 1_000: 1, "a": {"b\t": 1}, "y" * 1_000: 2})
    (one,) = locate([Finding("a.b\t", "no", "")], {TEMPLATE: text})
    line, caret = one.quote.split("\n")
    assert len(line) == 120 and line[caret.index("^") :].startswith('"b')


def test_findings_are_located_in_the_text_that_has_their_place() -> None:
    texts = {
        TEMPLATE: "resources:\n  a: {}\nparameters:\n  p: {}",
        ENVIRONMENT: "parameters: {p: 1}\nresource_registry: {A: B}",
        "in.yaml": "\n\nresources: {b: {}}",
    }
    findings = [
        Finding("resources.a", "in the template", ""),
        Finding("resource_registry.A", "in the environment", ""),
        Finding("parameters.p", "in the environment", "", file=ENVIRONMENT),
        Finding("resources.a<in.yaml>.resources.b", "nested", "", file="in.yaml",
                inner_place="resources.b"),
        Finding("hooks.add[0]", "of the request", ""),
        Finding("", "of all", ""),
        Finding("resources.a", "of an unknown file", "", file="other"),
        Finding("resources.a", "secret", "").without_values(),
    ]  # fmt: skip
    found = locate(findings, texts)
    assert [(one.line, one.column) for one in found] == [
        (2, 3), (2, 21), (1, 14), (3, 13), (0, 0), (0, 0), (0, 0), (2, 3),
    ]  # fmt: skip
    assert [bool(one.quote) for one in found] == [True] * 4 + [False] * 4


def test_the_last_of_several_environments_that_has_a_place_is_named() -> None:
    texts = {"one": "parameter_defaults: {a: 1, b: 2}", "two": "parameter_defaults: {a: 3}"}
    found = locate(
        [Finding("parameter_defaults.a", "", ""), Finding("parameter_defaults.b", "", "")],
        texts,
        ["one", "two"],
    )
    assert [(one.file, one.column) for one in found] == [("two", 22), ("one", 28)]


@pytest.mark.parametrize(
    ("text", "line", "column", "remedy"),
    [
        ("a:\n\tb: 1", 2, 1, "Indent with spaces, not with tabs."),
        ("a: b: c", 1, 5, 'Put the value in quotes if it contains ": "'),
        ("a: *x", 1, 4, 'text that begins with "*"'),
        ("a: * b", 1, 5, 'text cannot begin with "*"'),
        ("a: 1\nb: 'x\nc: 1\n", 2, 4, "Close the quotes that begin in line 2."),
        ('a: "x\nc: 1\n', 1, 4, "Close the quotes that begin in line 1."),
        ("a: [1, 2\nb: 1\n", 1, 4, 'Close the "[" of line 1'),
        ("a: {b: 1\nc: 2\n", 1, 4, 'Close the "{" of line 1'),
        ("a:\n  b: 1\n c: 2\n", 3, 2, "begins in line 1 the same indentation"),
        ("a: @x", 1, 4, 'text cannot begin with "@"'),
        ('a: "\\d"', 1, 5, "Use single quotes"),
        ("- a\nb: 1\n", 2, 1, 'begin each with "- "'),
        ("a: 1\n---\nb: 1", 2, 1, 'Remove the line "---"'),
        ("a: 1\nb\n", 2, 1, 'Write ": " after the key in line 2.'),
        ("ü: 1\nü: @", 2, 4, 'text cannot begin with "@"'),
        ("a: {b: 1}}\n", 1, 10, 'Remove the "}"'),
        ("a: 1\nb: [1]]\n", 2, 7, 'Remove the "]"'),
        ("a: 'it's'\n", 1, 8, "Between single quotes, write one that is part of the text twice"),
        ('a: 1\nb: "x" y\n', 2, 8, "Put the whole value in one pair of quotes."),
        ("ü: 1\nb: ü\x01\n", 2, 5, "Remove the character"),
        ("a: \x7f", 1, 4, "Remove the character"),
    ],
)
def test_a_syntax_error_has_its_position_and_a_remedy(
    text: str, line: int, column: int, remedy: str
) -> None:
    with pytest.raises(Invalid) as caught:
        read_document(text, "template")
    (one,) = caught.value.findings
    assert (one.line, one.column) == (line, column), one
    assert remedy in one.remedy, one
