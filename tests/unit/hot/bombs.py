"""Templates that are small and would cost much, by name: what is sent, and what is said of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.words import Json

JSON = '{"heat_template_version": "2021-04-16", '
YAML = "heat_template_version: 2021-04-16\n"
LARGE = "z" * 1_000_000


@dataclass(frozen=True, slots=True)
class Bomb:
    """said: a part of the first finding, or of the last with ``last``; empty: it is no fault."""

    text: str
    said: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Json] = field(default_factory=dict)
    environment: str = "{}"


def each(count: int, value: Json) -> str:
    """A template with so many resources of one value."""
    body = json.dumps({"type": "Test::Thing", "properties": {"value": value}})
    return JSON + '"resources": {' + ", ".join(f'"r{n}": {body}' for n in range(count)) + "}}"


def number(digits: str) -> str:
    return YAML + f"resources: {{a: {{type: Test::Thing, properties: {{value: {digits}}}}}}}"


def section(name: str, count: int, entry: Callable[[int], Json], **more: Json) -> str:
    return json.dumps(
        {"heat_template_version": "2021-04-16", name: {f"x{n}": entry(n) for n in range(count)}}
        | more
    )


def resource(n: int, **more: Json) -> Json:
    return {"type": "Test::Thing", **more}


def nested(snippet: Callable[[Json], Json], value: Json, times: int) -> Json:
    for _ in range(times):
        value = snippet(value)
    return value


TOO_LARGE = "functions make the stack larger than"
TOO_LONG = "take more steps than are allowed"

BOMBS: Mapping[str, Bomb] = {
    "one large file, often": Bomb(each(3_000, {"get_file": "f"}), TOO_LARGE, {"f": LARGE}),
    "one large parameter, often": Bomb(
        each(3_000, {"get_param": "p"})[:-1] + ', "parameters": {"p": {"type": "string"}}}',
        TOO_LARGE,
        parameters={"p": LARGE},
    ),
    "digests of a large file": Bomb(
        each(3_000, {"digest": ["sha512", {"get_file": "f"}]}), TOO_LARGE, {"f": LARGE}
    ),
    "a repeat in each resource": Bomb(
        each(20, {"repeat": {"template": "x" * 999 + "%a%", "for_each": {"%a%": ["y"] * 999}}}),
        TOO_LARGE,
    ),
    "a repeat of a repeat": Bomb(
        each(
            60,
            {"repeat": {
                "template": {"repeat": {"template": "%a%%b%", "for_each": {"%b%": ["z"] * 400}}},
                "for_each": {"%a%": ["y"] * 400},
            }},
        ),
        TOO_LARGE,
    ),
    "all combinations": Bomb(
        each(1, {"repeat": {"template": "x", "for_each": {f"%{n}%": ["a"] * 9 for n in range(9)}}}),
        "would make more than 200000 items",
    ),
    "a repeat that puts nothing in": Bomb(
        each(1, {"repeat": {
            "template": {"get_file": "f"}, "for_each": {"%a%": {"get_param": "p"}},
        }})[:-1] + ', "parameters": {"p": {"type": "json"}}}',
        "more than 1048576 characters",
        {"f": "x" * 400_000},
        {"p": ["y"] * 100_000},
    ),
    "lists that double": Bomb(
        each(100, nested(lambda one: {"list_concat": [one, one]}, ["a" * 9] * 4, 6))
    ),
    "maps that are merged": Bomb(
        each(200, {"map_merge": [{"get_param": "p"}, {"get_param": "p"}]})[:-1]
        + ', "parameters": {"p": {"type": "json"}}}',
        TOO_LARGE,
        parameters={"p": {f"k{n}": n for n in range(9_000)}},
    ),
    "a join of files": Bomb(
        each(9, {"list_join": ["", [{"get_file": "f"}] * 10]}), TOO_LARGE, {"f": "z" * 100_000}
    ),
    "a file split into letters": Bomb(
        each(9, {"str_split": [",", {"get_file": "f"}]}), TOO_LARGE, {"f": "," * 1_000_000}
    ),
    "many keys in a large text": Bomb(
        each(9, {"str_replace": {
            "template": {"get_file": "f"}, "params": {f"k{n}": "x" for n in range(1_000)},
        }}),
        TOO_LONG,
        {"f": "k" * 500_000},
    ),
    "a text that grows with each letter": Bomb(
        each(9, {"str_replace": {"template": "a" * 2_000, "params": {"a": "b" * 2_000}}}),
        "more than 1048576 characters",
    ),
    "one list without another": Bomb(
        each(1, {"filter": [[f"a{n}" for n in range(15_000)], [f"b{n}" for n in range(15_000)]]})
    ),
    "maps once each": Bomb(each(1, {"list_concat_unique": [[{"a": n} for n in range(15_000)]]})),
    "a value in a long list, often": Bomb(
        section("conditions", 5_000, lambda n: {"contains": ["x", {"get_param": "p"}]},
                parameters={"p": {"type": "json"}}),
        TOO_LARGE,
        parameters={"p": ["y"] * 100_000},
    ),
    "conditions one after the other": Bomb(
        section("conditions", 9_000, lambda n: {"not": f"x{n + 1}"} if n < 8_999 else True),
        "It leads over too many conditions",
    ),
    "conditions in a circle": Bomb(
        section("conditions", 40, lambda n: {"not": f"x{(n + 1) % 40}"}), "Circular definition"
    ),
    "conditions that ask twice": Bomb(
        section("conditions", 150, lambda n: {"and": [f"x{n - 1}"] * 2} if n else True)
    ),
    "a circle of resources": Bomb(
        section("resources", 5_000, lambda n: resource(n, depends_on=f"x{(n + 1) % 5_000}")),
        "Circular Dependency Found",
    ),
    "a hundred thousand parameters": Bomb(
        section("parameters", 14_000, lambda n: {"type": "string"}), "was not provided"
    ),
    "parameters that nobody knows": Bomb(
        section("parameters", 8_000, lambda n: {"type": "string"}),
        "was not defined in template",
        parameters={f"y{n}": n for n in range(8_000)},
    ),
    "references that are all wrong": Bomb(
        section("resources", 6_000, lambda n: resource(
            n, properties={"value": {"get_resource": f"y{n}"}})),
        "is incorrect",
    ),
    "long names that are nearly right": Bomb(
        section("resources", 700, lambda n: {"type": "Test::Thing", "condition": f"{'a' * 300}{n}"},
                conditions={f"{'a' * 299}b{n}": True for n in range(750)}),
        "Invalid condition",
    ),
    "keys that nobody knows": Bomb(
        section("resources", 1, lambda n: resource(n, **{f"tipe{n}": 1 for n in range(30_000)})),
        "is not a valid keyword",
    ),
    "patterns that go back, often": Bomb(
        section("parameters", 2_000, lambda n: {
            "type": "string", "default": "a" * 100 + "b",
            "constraints": [{"allowed_pattern": f"(a|aa)+{n}?$"}]}),
        "does not match pattern",
    ),
    "patterns of all letters": Bomb(
        section("parameters", 30, lambda n: {
            "type": "string", "constraints": [{"allowed_pattern": "[a-￾]" * 500 + str(n)}]}),
        TOO_LONG,
    ),
    "many allowed values": Bomb(
        section("parameters", 1, lambda n: {
            "type": "comma_delimited_list",
            "constraints": [{"allowed_values": [f"a{n}" for n in range(20_000)]}]}),
        parameters={"x0": [f"a{n}" for n in range(19_999, 9_999, -1)]},
    ),
    "breakpoints of all letters": Bomb(
        each(1, 1), environment=json.dumps(
            {"hooks": [{"at": "[a-￾]" * 100 + str(n), "on": ["pre-create"]} for n in range(200)]})
    ),
    "a path of a hundred thousand steps": Bomb(
        each(1, {"get_attr": ["r0", "output", *[1] * 100_000]}), "Circular Dependency Found"
    ),
    "yaql in each resource": Bomb(
        each(1_000, {"yaql": {"expression": "sequence().take(200).len()"}}), TOO_LONG
    ),
    "yaql without end": Bomb(
        each(9, {"yaql": {"expression": "[[].repeat()].flatten().len()"}}), "steps"
    ),
    "json that is deep": Bomb(
        section("parameters", 1, lambda n: {"type": "json"}),
        "must be valid JSON",
        parameters={"x0": "[" * 400_000},
    ),
    "brackets": Bomb("[" * 500_000, "nested deeper than 64"),
    "a large number": Bomb(number("9" * 400_000), "a number has 400000 characters"),
    "a large hexadecimal number": Bomb(number("0x" + "f" * 400_000), "a number has"),
    "a large octal number": Bomb(number("0" + "7" * 400_000), "a number has"),
    "a large number of minutes": Bomb(number("1" + ":59" * 130_000), "a number has"),
    "a large fraction of minutes": Bomb(number("1" + ":59" * 130_000 + ".5"), "a number has"),
    "infinity": Bomb(number(".inf"), "which JSON cannot say"),
    "more than a float": Bomb(number("1.0e+400"), "which JSON cannot say"),
    "many large numbers": Bomb(
        JSON + '"resources": {"a": [' + ",".join(["9" * 4_000] * 120) + "]}}", "too large"
    ),
    "a number as text": Bomb(
        section("parameters", 100, lambda n: {"type": "number", "default": "9" * 4_000}),
        "is too large",
    ),
    "a long key": Bomb(YAML + "? " + "k" * 400_000 + "\n: 1\n", "The template section is invalid"),
    "many aliases": Bomb(
        YAML + "x: &a [" + "1," * 1_000 + "]\n" + "".join(f"y{n}: *a\n" for n in range(5_000)),
        "counting each alias",
    ),
    "merge keys": Bomb(
        YAML + "a: &a {" + ", ".join(f"k{n}: 1" for n in range(9_000)) + "}\n"
        + "".join(f"b{n}: {{<<: *a}}\n" for n in range(5_000)),
        "merge keys bring in too many entries",
    ),
    "many small lists": Bomb(number("[" + "[]," * 130_000 + "]")),
}  # fmt: skip
