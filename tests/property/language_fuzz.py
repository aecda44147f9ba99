"""What is thrown at the language by chance: texts, templates, and expressions of yaql."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

from engine.errors import Invalid
from engine.hot.definition.stack import StackDefinition, define_stack
from engine.hot.environment.environment import parse_environment
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import decode, encode
from engine.hot.functions.cost_budget import CostBudget
from engine.hot.functions.function import FunctionError
from engine.hot.language.versions import VERSIONS
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.hot.syntax.document import read_document
from engine.hot.template.template import parse_template
from engine.hot.yaql.context import library_context
from engine.hot.yaql.evaluation import evaluate_yaql
from engine.words import Json
from tests.support.python_words import python_words

TYPES = {
    "T": TypeSchema("T", any_property=True, any_attribute=True),
    "S": TypeSchema(
        "S",
        {
            "s": Property(Kind.STRING, constraints=(Constraint("allowed_pattern", pattern="a*"),)),
            "n": Property(Kind.INTEGER, constraints=(Constraint("range", min=1),)),
            "f": Property(Kind.NUMBER),
            "b": Property(Kind.BOOLEAN),
            "l": Property(Kind.LIST, items=Property(Kind.STRING)),
            "m": Property(Kind.MAP, fields={"x": Property(Kind.ANY, required=True)}),
            "a": Property(Kind.ANY, hidden=True),
        },
        {"o": Attribute(), "k": Attribute(secret=True)},
    ),
}
NOTHING: Json = {}


class Everything:
    """A view of a stack in which every attribute is the same value."""

    def __init__(self, value: Json) -> None:
        self.value = value

    def reference(self, resource: str) -> str:
        return f"id-{resource}"

    def attribute(self, resource: str, attribute: str) -> Json:
        return self.value

    def attributes(self, resource: str) -> Mapping[str, Json]:
        return {"o": self.value}


def through(
    text: str, environment: str = "{}", parameters: Json = NOTHING
) -> StackDefinition | None:
    """Take a text all the way twice, and return the definition, or None where it is refused.

    Raises AssertionError where something else comes out than what may.
    """
    first, second = (_defined(text, environment, parameters) for _ in range(2))
    assert _summary(first) == _summary(second), "the same text is read in two ways"
    if isinstance(first, Invalid):
        assert all(one.reason for one in first.findings)
        _check_words(f"{one.reason} {one.remedy}" for one in first.findings)
        return None
    version = first.version
    for one in first.resources.values():
        _resolved(one.properties, version)
        _resolved(one.metadata, version)
    for output in first.outputs.values():
        _resolved(output.value, version)
    return first


def _defined(text: str, environment: str, parameters: Json) -> "StackDefinition | Invalid":
    try:
        return define_stack(
            template=parse_template(read_document(text, "template")),
            environment=parse_environment(read_document(environment, "environment")),
            parameters=parameters,
            files={"f": "a $p text"},
            pseudo={"OS::stack_name": "s"},
            types=TYPES,
            check_properties=lambda *_: None,
        )
    except Invalid as invalid:
        return invalid


def _summary(found: "StackDefinition | Invalid") -> Json:
    if isinstance(found, Invalid):
        return [str(one) for one in found.findings]
    return {name: one.digest for name, one in found.resources.items()}


def _resolved(expression: Json, version: str) -> None:
    stored = encode(expression)
    assert decode(stored, version) == expression
    for value in (None, [1, "a"], {"x": "b"}, "a,b"):
        for masked in (False, True):
            try:
                resolve(decode(stored, version), Everything(value), masked=masked)
            except FunctionError as wrong:
                assert str(wrong)
                _check_words([str(wrong)])


def _check_words(messages: Iterable[str]) -> None:
    for message in messages:
        assert not python_words(message), message


# -- templates by chance --------------------------------------------------------------------------

SCALARS: list[Json] = [
    None, True, False, 0, 1, -1, 3.5, 10**18, "", "a", "a,b", "$p", "%x%", "é", "0", "b",
    "${p0}", "x${l0}-${p1.a}", "${l1}", "$${x}", "${each.key}", "${each.value.a}", "${", "${nope}",
    "(a+)+$", "on", "r0", "p0", "f", "x" * 300, "$call", "md5", ",",
]  # fmt: skip
CONDITIONS = ("equals", "not", "and", "or")
FUNCTIONS = sorted(
    {name for one in VERSIONS.values() for name in one.functions} | {*CONDITIONS, "$call", "$$call"}
)
KEYS = ["template", "params", "for_each", "permutations", "expression", "data", "host", "port",
        "keys", "values", "a", "$p", "%x%", "x", "query"]  # fmt: skip


class Chance:
    """Makes templates from a source of randomness."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def value(self, depth: int = 4) -> Json:
        roll = self.chance.random()
        if depth <= 0 or roll < 0.3:
            return self.chance.choice(SCALARS)
        if roll < 0.5:
            return [self.value(depth - 1) for _ in range(self.chance.randrange(4))]
        if roll < 0.62:
            return {
                self.chance.choice(KEYS): self.value(depth - 1)
                for _ in range(self.chance.randrange(4))
            }
        return self.call(depth)

    def call(self, depth: int) -> Json:
        name = self.chance.choice(FUNCTIONS)
        return {name: SHAPES[name](self, depth - 1) if name in SHAPES else self.value(depth - 1)}

    def some(self, *kinds: Json) -> Json:
        return self.chance.choice(kinds)

    def template(self) -> Json:
        version = self.chance.choice([*VERSIONS, "2021-04-16", *["2026-12-01"] * 4])
        whole: dict[str, Json] = {"heat_template_version": version}
        whole["parameters"] = {f"p{n}": self.parameter() for n in range(self.chance.randrange(4))}
        if self.chance.random() < 0.5:
            whole["conditions"] = {
                f"c{n}": self.value(3) for n in range(self.chance.randrange(1, 4))
            }
        whole["resources"] = {f"r{n}": self.resource() for n in range(self.chance.randrange(4))}
        whole["outputs"] = {
            f"o{n}": {"value": self.value()} for n in range(self.chance.randrange(3))
        }
        if version == "2026-12-01":
            whole["locals"] = {f"l{n}": self.value() for n in range(self.chance.randrange(4))}
        if self.chance.random() < 0.1:
            whole[self.chance.choice([*whole, "hooks", "parameter_groups"])] = self.value()
        return whole

    def parameter(self) -> Json:
        kinds = ["string", "number", "comma_delimited_list", "json", "boolean"]
        parameter: dict[str, Json] = {"type": self.chance.choice(kinds)}
        if self.chance.random() < 0.8:
            parameter["default"] = self.value(2)
        if self.chance.random() < 0.4:
            rules = ["length", "range", "modulo", "allowed_values", "allowed_pattern"]
            parameter["constraints"] = [{self.chance.choice(rules): self.value(2)}]
        if self.chance.random() < 0.2:
            parameter["hidden"] = self.value(1)
        return parameter

    def resource(self) -> Json:
        resource: dict[str, Json] = {"type": self.chance.choice(["T", "S", "S", "U"])}
        properties = ["s", "n", "f", "b", "l", "m", "a"]
        resource["properties"] = {
            one: self.value() for one in self.chance.sample(properties, self.chance.randrange(5))
        }
        rarer = ["metadata", "depends_on", "deletion_policy", "condition", "external_id", "hooks",
                 "update_policy", "description", "for_each", "for_each"]  # fmt: skip
        for key in self.chance.sample(rarer, self.chance.randrange(3)):
            resource[key] = self.value(3)
        if self.chance.random() < 0.1:
            keys = ["a", "b", self.value(1)][: self.chance.randrange(4)]
            resource["for_each"] = self.some(keys, {"a": self.value(2), "b": 1}, "${p0}")
        return resource


SHAPES: Mapping[str, Any] = {
    "get_param": lambda c, d: c.some("p0", "p1", ["p0", c.value(1)], "OS::stack_name"),
    "get_attr": lambda c, d: ["r0", c.some("o", "k", "show"), *([c.value(1)] * c.some(0, 1))],
    "get_resource": lambda c, d: c.some("r0", "r1"),
    "get_file": lambda c, d: c.some("f", "g"),
    "list_join": lambda c, d: [c.some(",", ""), c.value(d), *([c.value(d)] * c.some(0, 1))],
    "str_split": lambda c, d: [",", c.value(d), *([c.some(0, 1, "1", 9)] * c.some(0, 1))],
    "str_replace": lambda c, d: {"template": c.value(d), "params": {"$p": c.value(d)}},
    "str_replace_strict": lambda c, d: {"template": c.value(d), "params": {"$p": c.value(d)}},
    "repeat": lambda c, d: {"template": c.value(d), "for_each": {"%x%": c.value(d)}},
    "digest": lambda c, d: [c.some("md5", "sha512", "nope"), c.value(d)],
    "map_merge": lambda c, d: [c.value(d), c.value(d)],
    "map_replace": lambda c, d: [{"a": c.value(d)}, {"keys": c.value(1), "values": {"a": 1}}],
    "yaql": lambda c, d: {"expression": Yaql(c.chance).expression(3), "data": c.value(d)},
    "if": lambda c, d: [c.some(True, "c0", c.value(2)), c.value(d), *([c.value(d)] * c.some(0, 1))],
    "filter": lambda c, d: [c.value(d), c.value(d)],
    "contains": lambda c, d: [c.value(d), c.value(d)],
    "list_concat": lambda c, d: [c.value(d), c.value(d)],
    "list_concat_unique": lambda c, d: [c.value(d), c.value(d)],
    "equals": lambda c, d: [c.value(d), c.value(d)],
    "get_local": lambda c, d: c.some("l0", "l1", ["l0", "a"], ["l1", 0]),
    "coalesce": lambda c, d: [c.value(d), c.value(d)],
    "lookup": lambda c, d: [c.value(d), c.value(d), *([c.value(d)] * c.some(0, 1))],
    "add": lambda c, d: [c.value(d), c.value(d)],
    "multiply": lambda c, d: [c.some(2**40, -1, "3", c.value(d)), c.value(d), 10**9],
    "divide": lambda c, d: [c.value(d), c.some(0, 2, c.value(d))],
    "modulo": lambda c, d: [c.value(d), c.some(0, -2, c.value(d))],
    "from_json": lambda c, d: c.some("[1, {}]", "{", "[" * 999 + "]" * 999, c.value(d)),
    "distinct": lambda c, d: [c.value(d), c.value(d)],
}

# -- yaql by chance -------------------------------------------------------------------------------


def _names() -> list[tuple[str, bool, bool]]:
    """Every function that can be named: (name, as a function, as a method)."""
    found: dict[str, tuple[bool, bool]] = {}
    context = library_context()
    while context is not None:
        for name, specs in context._functions.items():
            if name[0].isalpha():
                ways = any(one.is_function for one in specs), any(one.is_method for one in specs)
                found[name] = ways
        context = context.parent
    return [(name, *ways) for name, ways in sorted(found.items())]


NAMES = _names()
LITERALS = [
    "1", "2", "0", "-1", "3.5", "999999999", "'ab'", "'a,b'", "''", "null", "true", "[1, 2, 3]",
    "[]", "[[1, 2], [3, 4]]", "{a => 1, b => 2}", "$", "$.data", "$.data.l", "$.data.t", "a", 
    "range(3)", "range(200)", "sequence()", "[b, a]", "{}", "set(1, 2)", "timespan(hours => 2)",
    "datetime(2020, 1, 2)", "regex('(a+)+')", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'", "'x' * 5000",
    "[1] * 200", "[].repeat()", "[1].cycle()",
]  # fmt: skip
LAMBDAS = ["$", "$ + 1", "$ > 1", "$.a", "$1 + $2", "true", "[$, $]", "$ = 2", "$.len()", 
           "{$ => $}", "range($)", "$ * $", "$ + $"]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "mod", "=", "!=", "<", ">=", "in", "and", "or", "=~", "!~", ".",
             "?."]  # fmt: skip
DATA: Json = {"l": [3, 1, 2], "t": "hello world", "a": {"b": [{"a": 1}, {"a": 2}]}}


class Yaql:
    """Makes expressions of all functions that there are."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def expression(self, depth: int = 4) -> str:
        roll = self.chance.random()
        if depth <= 0 or roll < 0.2:
            return self.chance.choice(LITERALS)
        if roll < 0.75:
            return self._call(depth)
        if roll < 0.9:
            operator = self.chance.choice(OPERATORS)
            return f"({self.expression(depth - 1)} {operator} {self.expression(depth - 1)})"
        form = self.chance.choice(
            ["[{}, {}]", "{{a => {}, b => {}}}", "({})[{}]", "let({}) -> {}", "def(f, {}) -> f({})",
             "switch({} => {})"]
        )  # fmt: skip
        return form.format(self.expression(depth - 1), self.expression(depth - 1))

    def _call(self, depth: int) -> str:
        name, as_function, as_method = self.chance.choice(NAMES)
        args = [
            self.chance.choice([self.chance.choice(LAMBDAS), self.expression(depth - 1)])
            for _ in range(self.chance.choice([0, 1, 1, 1, 2, 2, 3]))
        ]
        if as_method and (not as_function or self.chance.random() < 0.7):
            return f"({self.expression(depth - 1)}).{name}({', '.join(args)})"
        return f"{name}({', '.join(args)})"


def evaluated(expression: str) -> None:
    """Evaluate an expression twice; only a value or Wrong may come out, the same both times."""
    assert _outcome(expression) == _outcome(expression)


def _outcome(expression: str) -> tuple[str, str]:
    budget = CostBudget(steps=20_000)
    try:
        return "value", repr(evaluate_yaql(expression, DATA, budget.limits, budget))
    except FunctionError as wrong:
        assert str(wrong)
        _check_words([str(wrong)])
        return "wrong", str(wrong)
