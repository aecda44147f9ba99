"""Small templates that are expensive to define, by name, each with its expected finding."""

import json
from collections.abc import Mapping

from engine.words import Json
from tests.support.template_builders import (
    JSON,
    LARGE,
    TOO_LARGE,
    TOO_LONG,
    YAML,
    CostlyTemplate,
    each,
    extended,
    keyed,
    letters,
    nested,
    number,
    of_text,
    patterns,
    resource,
    section,
)

THING: dict[str, Json] = {"type": "Test::Thing"}
#: Large parts of the body of a `for_each`.
OF_A_FOR_EACH: Mapping[str, dict[str, Json]] = {
    "properties": {"properties": {"value": {"length": [[]] * 60_000}}},
    "metadata": {"metadata": {"v": [[]] * 60_000}},
    "the update policy": {"update_policy": {"v": [[]] * 60_000}},
    "requirements": {"depends_on": ["v"] * 60_000},
    "computed requirements": {"depends_on": [{"if": [True, "v"]}] + ["v"] * 60_000},
    "causes of replacement": {"lifecycle": {"replace_when": [{"length": [[]] * 60_000}]}},
    "preconditions": {
        "preconditions": [
            {"assert": {"equals": [{"get_attr": ["v", "output"]}, [[]] * 60_000]}, "message": "m"}
        ]
    },
}

COSTLY_TEMPLATES: Mapping[str, CostlyTemplate] = {
    "one large file, often": CostlyTemplate(
        each(3_000, {"get_file": "f"}), TOO_LARGE, {"f": LARGE}
    ),
    "one large parameter, often": CostlyTemplate(
        each(3_000, {"get_param": "p"})[:-1] + ', "parameters": {"p": {"type": "string"}}}',
        TOO_LARGE,
        parameters={"p": LARGE},
    ),
    "digests of a large file": CostlyTemplate(
        each(3_000, {"digest": ["sha512", {"get_file": "f"}]}), TOO_LARGE, {"f": LARGE}
    ),
    "a repeat in each resource": CostlyTemplate(
        each(20, {"repeat": {"template": "x" * 999 + "%a%", "for_each": {"%a%": ["y"] * 999}}}),
        TOO_LARGE,
    ),
    "a repeat of a repeat": CostlyTemplate(
        each(
            60,
            {"repeat": {
                "template": {"repeat": {"template": "%a%%b%", "for_each": {"%b%": ["z"] * 400}}},
                "for_each": {"%a%": ["y"] * 400},
            }},
        ),
        TOO_LARGE,
    ),
    "many variables in many texts": CostlyTemplate(
        each(10, {"repeat": {
            "for_each": {f"%{n}%": ["x"] for n in range(3_000)}, "template": {"get_param": "p"},
        }})[:-1] + ', "parameters": {"p": {"type": "json"}}}',
        TOO_LONG,
        parameters={"p": ["x"] * 40_000},
    ),
    "many variables in a large text": CostlyTemplate(
        each(4, {"repeat": {
            "for_each": {f"%{n}%": ["x"] for n in range(3_000)}, "template": {"get_file": "f"},
        }}),
        TOO_LONG,
        {"f": "%" * 900_000},
    ),
    "a letter that is everywhere": CostlyTemplate(
        each(20, {"str_replace": {"template": {"get_file": "f"}, "params": {"x": "yz"}}}),
        TOO_LONG,
        {"f": "x" * 250_000},
    ),
    "all combinations": CostlyTemplate(
        each(1, {"repeat": {"template": "x", "for_each": {f"%{n}%": ["a"] * 9 for n in range(9)}}}),
        "would make more than 200000 items",
    ),
    "a repeat that puts nothing in": CostlyTemplate(
        each(1, {"repeat": {
            "template": {"get_file": "f"}, "for_each": {"%a%": {"get_param": "p"}},
        }})[:-1] + ', "parameters": {"p": {"type": "json"}}}',
        TOO_LONG,
        {"f": "x" * 400_000},
        {"p": ["y"] * 100_000},
    ),
    "lists that double": CostlyTemplate(
        each(100, nested(lambda one: {"list_concat": [one, one]}, ["a" * 9] * 4, 6))
    ),
    "maps that are merged": CostlyTemplate(
        each(200, {"map_merge": [{"get_param": "p"}, {"get_param": "p"}]})[:-1]
        + ', "parameters": {"p": {"type": "json"}}}',
        TOO_LARGE,
        parameters={"p": {f"k{n}": n for n in range(9_000)}},
    ),
    "a join of files": CostlyTemplate(
        each(9, {"list_join": ["", [{"get_file": "f"}] * 10]}), TOO_LARGE, {"f": "z" * 100_000}
    ),
    "a file split into letters": CostlyTemplate(
        each(9, {"str_split": [",", {"get_file": "f"}]}), TOO_LARGE, {"f": "," * 1_000_000}
    ),
    "many keys in a large text": CostlyTemplate(
        each(9, {"str_replace": {
            "template": {"get_file": "f"}, "params": {f"k{n}": "x" for n in range(1_000)},
        }}),
        TOO_LONG,
        {"f": "k" * 500_000},
    ),
    "a text that grows with each letter": CostlyTemplate(
        each(9, {"str_replace": {"template": "a" * 2_000, "params": {"a": "b" * 2_000}}}),
        "more than 1048576 characters",
    ),
    "one list without another": CostlyTemplate(
        each(1, {"filter": [[f"a{n}" for n in range(15_000)], [f"b{n}" for n in range(15_000)]]})
    ),
    "maps once each": CostlyTemplate(
        each(1, {"list_concat_unique": [[{"a": n} for n in range(15_000)]]})
    ),
    "a value in a long list, often": CostlyTemplate(
        section("conditions", 5_000, lambda n: {"contains": ["x", {"get_param": "p"}]},
                parameters={"p": {"type": "json"}}),
        TOO_LARGE,
        parameters={"p": ["y"] * 100_000},
    ),
    "conditions one after the other": CostlyTemplate(
        section("conditions", 9_000, lambda n: {"not": f"x{n + 1}"} if n < 8_999 else True),
        "The chain of conditions is too long",
    ),
    "circular conditions": CostlyTemplate(
        section("conditions", 40, lambda n: {"not": f"x{(n + 1) % 40}"})
    ),
    "conditions that ask twice": CostlyTemplate(
        section("conditions", 150, lambda n: {"and": [f"x{n - 1}"] * 2} if n else True)
    ),
    "a circle of resources": CostlyTemplate(
        section("resources", 5_000, lambda n: resource(n, depends_on=f"x{(n + 1) % 5_000}")),
        "Circular Dependency Found",
    ),
    "a hundred thousand parameters": CostlyTemplate(
        section("parameters", 14_000, lambda n: {"type": "string"}), "was not provided"
    ),
    "parameters that nobody knows": CostlyTemplate(
        section("parameters", 8_000, lambda n: {"type": "string"}),
        "was not defined in template",
        parameters={f"y{n}": n for n in range(8_000)},
    ),
    "references that are all wrong": CostlyTemplate(
        section("resources", 6_000, lambda n: resource(
            n, properties={"value": {"get_resource": f"y{n}"}})),
        "is incorrect",
    ),
    "long names that are nearly right": CostlyTemplate(
        section("resources", 700, lambda n: {"type": "Test::Thing", "condition": f"{'a' * 300}{n}"},
                conditions={f"{'a' * 299}b{n}": True for n in range(750)}),
        "Invalid condition",
    ),
    "keys that nobody knows": CostlyTemplate(
        section("resources", 1, lambda n: resource(n, **{f"tipe{n}": 1 for n in range(30_000)})),
        "is not a valid keyword",
    ),
    "patterns that go back, often": CostlyTemplate(
        section("parameters", 2_000, lambda n: {
            "type": "string", "default": "a" * 100 + "b",
            "constraints": [{"allowed_pattern": f"(a|aa)+{n}?$"}]}),
        "does not match pattern",
    ),
    "patterns with many different letters": CostlyTemplate(
        patterns(20, lambda n: f"(?:{letters(9 * n, 1_900, '[{}b]')}){{9}}(?:a|a)*b|(?:a|a)*b",
                 "a" * 50),
        "does not match pattern",
    ),
    "counted rounds of counted rounds": CostlyTemplate(
        patterns(50, lambda n: f"(?:(?:a{{0,1000}}){{0,1000}}){{0,1000}}{n}", "a" * 5_000),
        "is too large for the text",
    ),
    "long patterns": CostlyTemplate(
        patterns(49, lambda n: f"a{n}{'(?:a|b)' * 1_400}", "a"), "does not match pattern"
    ),
    "wide letters of any case": CostlyTemplate(
        patterns(900, lambda n: f"(?i){'[a-￾]' * 40}{n}", "a"), "does not match pattern"
    ),
    "a pattern of thousands of groups": CostlyTemplate(
        patterns(1, lambda n: "(?:(a)|b)*c" + "()" * 3_000, "a" * 200_000), "20000 steps"
    ),
    "thousands of groups that are referred to": CostlyTemplate(
        patterns(1, lambda n: "(?:(a)|(b)|a)*\\1c" + "()" * 3_000, "ab" * 20_000), "20000 steps"
    ),
    "thousands of empty rounds": CostlyTemplate(
        patterns(5, lambda n: f"(?:{'(?:a?)*' * 900})*{n}", "a" * 20_000), "20000 steps"
    ),
    "a pattern that is deep": CostlyTemplate(
        patterns(1, lambda n: "(?:a|b" * 400 + "a" + ")" * 400, "a"), 'The pattern "(?:a|b'
    ),
    "patterns of nested templates": CostlyTemplate(
        section("resources", 95, lambda n: {
            "type": "l.yaml", "properties": {"x0": "a" * 1_200 + str(n)}}),
        "20000 steps",
        {"l.yaml": section("parameters", 1, lambda n: {
            "type": "string", "constraints": [{"allowed_pattern": "(?:(a)|a)*\\1\\1c"}]})},
    ),
    "patterns of all letters": CostlyTemplate(
        section("parameters", 30, lambda n: {
            "type": "string", "constraints": [{"allowed_pattern": "[a-￾]" * 500 + str(n)}]}),
        TOO_LONG,
    ),
    "many allowed values": CostlyTemplate(
        section("parameters", 1, lambda n: {
            "type": "comma_delimited_list",
            "constraints": [{"allowed_values": [f"a{n}" for n in range(20_000)]}]}),
        parameters={"x0": [f"a{n}" for n in range(19_999, 9_999, -1)]},
    ),
    "breakpoints of all letters": CostlyTemplate(
        each(1, 1), environment=json.dumps(
            {"hooks": [{"at": "[a-￾]" * 100 + str(n), "on": ["pre-create"]} for n in range(200)]})
    ),
    "a path of a hundred thousand steps": CostlyTemplate(
        each(1, {"get_attr": ["r0", "output", *[1] * 100_000]}), "Circular Dependency Found"
    ),
    "yaql in each resource": CostlyTemplate(
        each(1_000, {"yaql": {"expression": "sequence().take(200).len()"}}), TOO_LONG
    ),
    "yaql without end": CostlyTemplate(
        each(9, {"yaql": {"expression": "[[].repeat()].flatten().len()"}}), "steps"
    ),
    "yaql that is read again and again": CostlyTemplate(
        section("resources", 3_000, lambda n: resource(n, properties={"value": {"yaql": {
            "expression": {"get_param": f"p{n % 129}"}, "data": {"get_attr": ["x0", "output"]}}}}),
            parameters={f"p{n}": {"type": "string"} for n in range(129)}),
        TOO_LONG,
        parameters={f"p{n}": f"{n}" + "+1" * 1_500 for n in range(129)},
    ),
    "yaql that is long": CostlyTemplate(
        section("resources", 48, lambda n: resource(n, properties={"value": {"yaql": {
            "expression": f"{n}" + "+1" * 4_900}}})),
        "it recurses too deeply",
    ),
    "a long pattern in yaql, often": CostlyTemplate(
        section("resources", 40, lambda n: resource(n, properties={"value": {"yaql": {
            "expression": "let(r => regex($.data.p)) -> $.data.l.select($r.matches($)).len()",
            "data": {"l": [str(n) for n in range(200)], "p": "a" * 9_000 + str(n)}}}})),
        "20000 steps",
    ),
    "json that is deep": CostlyTemplate(
        section("parameters", 1, lambda n: {"type": "json"}),
        "must be valid JSON",
        parameters={"x0": "[" * 400_000},
    ),
    "brackets": CostlyTemplate("[" * 500_000, "nested deeper than 64"),
    "brackets that close": CostlyTemplate(
        YAML + "a: " + "[" * 250_000 + "]" * 250_000, "nested deeper than 64"
    ),
    "many deep rows of brackets": CostlyTemplate(
        YAML + "a: " + ("[" * 2_500 + "]" * 2_500 + ", ") * 90, "nested deeper than 64"
    ),
    "flat brackets that hide": CostlyTemplate(
        YAML + "resources: {a: {type: Test::Thing, properties: {value: ["
        + '[a"b],' * 70_000 + "]}}}\nx: 1\nx: 1",
        "is given twice",
    ),
    "a large text by aliases": CostlyTemplate(
        YAML + f'x: &a "{"z" * 400_000}"\ny: [' + "*a," * 30_000 + "]", "counting each alias"
    ),
    "digests of a text by aliases": CostlyTemplate(
        of_text("z" * 400_000, 1_200, "{digest: [sha512, *a]}"), "counting each alias"
    ),
    "a long key above many values": CostlyTemplate(
        each(1, {"k" * 240_000: [1] * 90_000}),
    ),
    "a large number": CostlyTemplate(number("9" * 400_000), "a number has 400000 characters"),
    "a large hexadecimal number": CostlyTemplate(number("0x" + "f" * 400_000), "a number has"),
    "a large octal number": CostlyTemplate(number("0" + "7" * 400_000), "a number has"),
    "a large number of minutes": CostlyTemplate(number("1" + ":59" * 130_000), "a number has"),
    "a large fraction of minutes": CostlyTemplate(
        number("1" + ":59" * 130_000 + ".5"), "a number has"
    ),
    "infinity": CostlyTemplate(number(".inf"), "which JSON cannot represent"),
    "more than a float": CostlyTemplate(number("1.0e+400"), "which JSON cannot represent"),
    "many large numbers": CostlyTemplate(
        JSON + '"resources": {"a": [' + ",".join(["9" * 4_000] * 120) + "]}}", "too large"
    ),
    "a number as text": CostlyTemplate(
        section("parameters", 100, lambda n: {"type": "number", "default": "9" * 4_000}),
        "is too large",
    ),
    "a long key": CostlyTemplate(
        YAML + "? " + "k" * 400_000 + "\n: 1\n", "The template section is invalid"
    ),
    "many aliases": CostlyTemplate(
        YAML + "x: &a [" + "1," * 1_000 + "]\n" + "".join(f"y{n}: *a\n" for n in range(5_000)),
        "counting each alias",
    ),
    "merge keys": CostlyTemplate(
        YAML + "a: &a {" + ", ".join(f"k{n}: 1" for n in range(9_000)) + "}\n"
        + "".join(f"b{n}: {{<<: *a}}\n" for n in range(5_000)),
        "merge keys add too many entries",
    ),
    "many small lists": CostlyTemplate(number("[" + "[]," * 130_000 + "]")),
    "a reference with many dots": CostlyTemplate(
        extended(resources={"a": THING | {"properties": {"value": "${" + "a." * 200_000 + "}"}}}),
        "has more than 1000 characters",
    ),
    "a local with many dots": CostlyTemplate(
        extended(locals={"a": "${" + "a." * 100_000 + "}"}, resources={}),
        "has more than 1000 characters",
    ),
    "all resources of a for_each, often": CostlyTemplate(
        extended(
            resources={"w": keyed()},
            outputs={f"o{n}": {"value": {"get_attr": ["w", "output"]}} for n in range(6_000)},
        ),
        TOO_LARGE,
    ),
    "a value of a for_each that reads a resource": CostlyTemplate(
        extended(resources={
            "v": THING,
            "w": THING | {
                "for_each": {"a": [{"get_attr": ["v", "output"]}, [[]] * 60_000]},
                "properties": {"value": ["${each.value}"] * 9_000},
            },
        }),
        TOO_LARGE,
    ),
    **{
        f"{what} of a for_each": CostlyTemplate(
            extended(resources={"v": THING, "w": keyed(**body)}), TOO_LARGE
        )
        for what, body in OF_A_FOR_EACH.items()
    },
    "many outputs with similar names": CostlyTemplate(
        json.dumps({
            "heat_template_version": "2021-04-16",
            "parameters": {f"param{n}": {"type": "string", "default": ""} for n in range(3_000)},
            "outputs": {f"o{n}": {"value": {"get_param": f"parm{n}"}} for n in range(5_000)},
        }),
    ),
    "many outputs with similar keys": CostlyTemplate(
        extended(
            parameters={"m": {"type": "json", "default": {f"key{n}": 1 for n in range(3_000)}}},
            outputs={f"o{n}": {"value": {"lookup": [{"get_param": "m"}, f"kye{n}"]}}
                     for n in range(5_000)},
        ),
        TOO_LARGE,
    ),
}  # fmt: skip
