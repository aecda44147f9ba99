"""yaql: what it gives, what is said when it is wrong, and that it cannot take long."""

import subprocess
import sys
from contextlib import suppress

import pytest

from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import Call, decode, encode
from engine.hot.functions.cost_budget import BudgetExceeded, CostBudget, CostLimits
from engine.hot.functions.function import FunctionError
from engine.hot.yaql.evaluation import check_yaql, evaluate_yaql
from engine.words import Json
from tests.unit.hot.hot_support import Seen, defined, fault_of, faults, thing, value_of

PEOPLE: Json = [{"name": "ada", "age": 3}, {"name": "bob", "age": 5}, {"name": "cy", "age": 5}]


def given(expression: str, data: Json = None, budget: CostBudget | None = None) -> Json:
    budget = budget or CostBudget()
    return evaluate_yaql(expression, data, budget.limits, budget)


def wrong(expression: str, data: Json = None) -> str:
    with pytest.raises(FunctionError) as caught:
        given(expression, data)
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "data", "value"),
    [
        ("$.data.sum()", [3, 2, 1], 6),
        ("$.data.where($.age > 4).select($.name)", PEOPLE, ["bob", "cy"]),
        ("$.data.select({n => $.name, a => $.age + 1}).first()", PEOPLE, {"n": "ada", "a": 4}),
        ("$.data.orderByDescending($.name).name", PEOPLE, ["cy", "bob", "ada"]),
        ("$.data.groupBy($.age, $.name)", PEOPLE, [[3, ["ada"]], [5, ["bob", "cy"]]]),
        ("$.data.toDict($.name, $.age)", PEOPLE, {"ada": 3, "bob": 5, "cy": 5}),
        ("$.data.toDict($.age, $.name)", PEOPLE, {"3": "ada", "5": "cy"}),
        ("dict($.data.items().select([$[1], $[0]]))", {"a": "x"}, {"x": "a"}),
        ("$.data.get(b, 7)", {"a": 1}, 7),
        ("$.data?.a", None, None),
        ("$.data.keys()", {"b": 1, "a": 2}, ["b", "a"]),
        ("set(b, a, b)", None, ["a", "b"]),
        ("set(b, a).union(set(c)).toList()", None, ["a", "b", "c"]),
        ("let(a => 1, b => 2) -> $a + $b", None, 3),
        ("def(fac, switch($ = 1 => 1, true => $ * fac($ - 1))) -> fac(5)", None, 120),
        ("coalesce($.data, 4)", None, 4),
        ("sequence().select($ * $).where($ > 3).take(2)", None, [4, 9]),
        ("'a,b'.split(',').join('-')", None, "a-b"),
        ("str(null) + str(true) + str([1])", None, "nulltrue(1,)"),
        ("'{a} {b}'.replace({'{a}' => 1, '{b}' => 2})", None, "1 2"),
        ("'abca'.replace(a, xy, 1)", None, "xybca"),
        ("'abcab'.lastIndexOf(ab)", None, 3),
        ("'abcab'.lastIndexOf(ab, 0, 3)", None, 0),
        ("'a-b-c'.rightSplit('-', 1)", None, ["a-b", "c"]),
        ("characters(octdigits => true)", None, list("01234567")),
        ("pow(2, 10) + shiftBitsLeft(1, 3) + round(2.5, 0)", None, 1034.0),
        ("'web1' =~ '^web[0-9]$' and 'x' !~ regex(y)", None, True),
        ("regex('a(b+)').search('xabb', $2)", None, {"value": "bb", "start": 2, "end": 4}),
        ("regex('(?P<n>b)').searchAll('abab', $n.start)", None, [1, 3]),
        ("regex('(,)').split('a,b')", None, ["a", ",", "b"]),
        ("'a1b22'.replace(regex('([0-9]+)'), '<\\\\1>')", None, "a<1>b<22>"),
        ("regex('[0-9]').replaceBy('a1b2', str(int($.value) + 1))", None, "a2b3"),
        ("regex('(a|ab)(c|bcd)*$', ignoreCase => true).matches('xABCD')", None, True),
        ("datetime('2020-02-29T10:00:00Z').format('%d.%m.%Y')", None, "29.02.2020"),
        ("(datetime(2020, 1, 2) - datetime('2020-01-01')).hours", None, 24.0),
        ("datetime('1.2.2020 3', '%d.%m.%Y %H').hour", None, 3),
        ("datetime('2020-01-01 10:00 +02:00').utc.hour", None, 8),
    ],
)
def test_values(expression: str, data: Json, value: Json) -> None:
    assert given(expression, data) == value


@pytest.mark.parametrize(
    ("expression", "data", "part"),
    [
        ("$.data.nope", {"a": 1}, 'the key "nope" does not exist'),
        ("$.data.a.b", {"a": 1}, 'there is no "b" in a value that is not a map'),
        ("nope(1)", None, 'Unknown function "nope"'),
        ("$.data.nope()", "its secret", 'Unknown method "nope"'),
        ("$.data.len(1, 2)", "its secret", 'No method "len" matches supplied arguments'),
        ("int($.data)", "its secret", "invalid literal for int() with base 10"),
        ("1 / 0", None, "by zero"),
        ("[].first()", None, "a collection has too few items, or too many"),
        ("[1][5]", None, "index out of range"),
        ("def(f, f($)) -> f(1)", None, "it recurses too deeply"),
        ("range(201)", None, "Collection length exceeds 200 elements"),
        ("'a' * 20000", None, "Expression consumed too much memory"),
        ("[1, 2].assert($.len() > 2, 'three at least')", None, "three at least"),
        ("random()", None, 'The yaql function "random" cannot be used in a template'),
        ("call(now, [], {})", None, 'The yaql function "now" cannot be used in a template'),
        ("datetime('10:00')", None, "needs its year, its month and its day"),
        ("datetime('2020-01-01 10:00 XYZ')", None, "is not known"),
        ("datetime(2020, 1, 1)", None, "a value of the kind datetime, which JSON cannot represent"),
        ("{[1] => 2}", None, "The yaql expression"),
        ("float(inf)", None, "which JSON cannot represent"),
        ("pow(2, 64)", None, "a number that is too large"),
        ("str(range(3))", None, "cannot write this value as a text"),
        ("regex('(')", None, 'The pattern "(" is not a regular expression'),
        ("'a'.replaceBy(regex(a), 1)", None, "substitutes text only"),
    ],
)
def test_what_fails_and_why(expression: str, data: Json, part: str) -> None:
    said = wrong(expression, data)
    assert part in said and "secret" not in said


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("$.data.", "Bad expression: unexpected end at its end."),
        ("$.data +* 1", "Bad expression: unexpected '*' at position 8."),
        ("$ € 1", "Bad expression: Lexical error: illegal character"),
        ("", "Bad expression"),
        ("1" * 400, "a number has more than 309 digits"),
        ("'" + r"\N{no such}" + "'", "Bad expression"),
        ("1 + " * 5_000 + "1", "has at most 10000 characters"),
        ("$.data.select(now())", 'The yaql function "now" cannot be used'),
        ("{a => [random()]}", 'The yaql function "random" cannot be used'),
    ],
)
def test_a_bad_expression_is_told_before_its_data_are_known(expression: str, part: str) -> None:
    said = fault_of({"yaql": {"expression": expression, "data": {"get_attr": ["b", "output"]}}})
    assert said.startswith("resources.a.properties.value.yaql: ") and part in said


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ("$", '"yaql" syntax should be yaql: {expression:'),
        ({"data": 1}, '"yaql" syntax should be'),
        ({"expression": "$", "date": 1}, '"yaql" has no "date"'),
        ({"get_param": "p"}, '"yaql" syntax should be'),
        ({"expression": [1]}, 'The "expression" argument to yaql must contain a string.'),
    ],
)
def test_its_form_is_checked(args: Json, part: str) -> None:
    assert part in fault_of({"yaql": args})


def test_what_reads_a_resource_waits_for_it() -> None:
    data = {"x": {"get_attr": ["b", "output"]}}
    snippet = {"yaql": {"expression": "$.data.x.select($ * 2)", "data": data}}
    waiting = value_of(snippet)
    assert isinstance(waiting, Call)
    assert resolve(decode(encode(waiting), waiting.version), Seen([1, 2])) == [2, 4]
    with pytest.raises(FunctionError, match="expression failed"):
        resolve(waiting, Seen(3))
    text = value_of({"yaql": {"expression": {"get_attr": ["b", "output"]}}})
    assert resolve(text, Seen("1 + 1")) == 2


def test_the_limits_it_was_accepted_with_are_kept() -> None:
    snippet = {"yaql": {"expression": "range($.data).len()", "data": {"get_attr": ["b", "output"]}}}
    few = value_of(snippet, limits=CostLimits(yaql_elements=3))
    listed = {"yaql": {"expression": "range(5)"}}
    assert "exceeds 3 elements" in fault_of(listed, limits=CostLimits(yaql_elements=3))
    assert few.args["limits"] == [3, 10_000] and "limits" not in value_of(snippet).args
    assert resolve(few, Seen(5)) == 5


def test_in_conditions() -> None:
    template: dict[str, Json] = {
        "parameters": {"n": {"type": "json", "default": [1, 2]}},
        "conditions": {
            "on": {"yaql": {"expression": "$.data.sum() = 3", "data": {"get_param": "n"}}},
            "off": {"not": {"yaql": {"expression": "true"}}},
        },
        "resources": {"a": thing() | {"condition": "on"}, "b": thing() | {"condition": "off"}},
    }
    assert set(defined(template).resources) == {"a"}
    bad = faults({"conditions": {"x": {"yaql": {"expression": "$.data.nope"}}}})
    assert bad[0].place == "conditions.x" and "yaql expression failed" in bad[0].reason
    assert "is invalid" in faults(template | {"heat_template_version": "2016-10-14"})[0].reason


def test_a_hidden_parameter_is_masked() -> None:
    snippet = {"yaql": {"expression": "$.data + x", "data": {"get_param": "p"}}}
    made = defined(
        {
            "parameters": {"p": {"type": "string", "hidden": True}},
            "resources": {"a": thing(value=snippet)},
        },
        parameters={"p": "secret"},
    ).resources["a"]
    assert made.properties["value"] == "secretx"
    assert made.masked_properties == {"value": "******x"}


SETS = """
from engine.hot.functions.cost_budget import CostBudget
from engine.hot.yaql.evaluation import evaluate_yaql
one = CostBudget()
print(evaluate_yaql("[set(b, a, z, q).toList(), str(set(b, a, z)), characters(digits => true)]",
               None, one.limits, one))
"""


def test_every_process_walks_sets_in_the_same_order() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", SETS],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


A = "'" + "a" * 4_000 + "'"
ENDLESS = [
    "sequence().len()",
    "[[].repeat()].flatten().len()",
    "generate(0, true, 0).len()",
    "generateMany(1, [$, $]).len()",
    "range(200).join(range(200), false, 1).len()",
    "range(200).select(range(200).select(range(200).len()).sum()).sum()",
    "[1].cycle().where(false).len()",
    "[1].cycle().len()",
    "def(f, range(2).select(f($))) -> f(1)",
    "range(200).select(range(200))",
    "range(60).aggregate([$1, $1], [])",
    "let(range(60).aggregate([$1, $1, $1], [])) -> $1.flatten().len()",
    "range(200).aggregate($1.where(true), sequence()).len()",
    f"let({A}) -> range(200).select($1.lastIndexOf(b + $1.substring(2000)))",
    f"range(200).select(regex('(a|aa)+$').matches({A} + b))",
    f"range(200).select(regex('(.*)(.*)(.*)(.*)\\\\1x').matches({A}))",
    f"{A}.replace('', {A})",
    f"{A}.replace(regex(''), {A})",
    "pow(10, 1000000)",
    "pow(pow(7, 300), pow(7, 300))",
    "shiftBitsLeft(1, 100000000)",
    "round(5, -100000000)",
    "range(200).aggregate($1 * $1, 3)",
    "'{a}'.replace(dict(range(60).select([str($), str($ + 1) + str($ + 1)])))",
]


@pytest.mark.parametrize("expression", ENDLESS, ids=range(len(ENDLESS)))
def test_what_would_not_end_is_refused(expression: str) -> None:
    budget = CostBudget()
    with suppress(FunctionError):
        given(expression, budget=budget)
    assert budget.steps_left > -100_000


def test_rounds_of_a_lambda_are_steps() -> None:
    budget = CostBudget(steps=20_000)
    given("range(100).join(range(100), false, 1).len()", budget=budget)
    assert budget.steps_left < 10_000


def test_one_expression_may_not_spend_what_is_for_a_template() -> None:
    budget = CostBudget(steps=100_000)
    with pytest.raises(FunctionError, match="more than the 20000 steps") as caught:
        given("sequence().len()", budget=budget)
    assert not isinstance(caught.value, BudgetExceeded) and budget.steps_left == 80_000
    many: dict[str, Json] = {
        f"r{n}": thing(value={"yaql": {"expression": "sequence().take(200).len()"}})
        for n in range(20)
    }
    (told,) = faults({"resources": many}, limits=CostLimits(steps=5_000))
    assert told.code == "RequestLimitExceeded" and ".value.yaql" in told.place


def test_an_expression_is_read_alone() -> None:
    """Two that are read at the same time, in threads, do not meet in the reader."""
    check_yaql("1 + 1", CostBudget())
    for _ in range(3):
        with pytest.raises(FunctionError):
            check_yaql("(1 +", CostBudget())
        check_yaql("(1 + 2)", CostBudget())
