"""yaql: results, error messages and cost limits."""

import pytest

from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import FunctionCall, decode, encode
from engine.hot.functions.cost_budget import BudgetExceeded, CostBudget, CostLimits
from engine.hot.functions.function import FunctionError
from engine.hot.yaql.evaluation import check_yaql, evaluate_yaql
from engine.words import Json
from tests.unit.hot.hot_support import UniformView, defined, fault_of, faults, thing, value_of

PERSONS: Json = [{"name": "ada", "age": 3}, {"name": "bob", "age": 5}, {"name": "cy", "age": 5}]


def evaluated(expression: str, data: Json = None, budget: CostBudget | None = None) -> Json:
    budget = budget or CostBudget()
    return evaluate_yaql(expression, data, budget.limits, budget)


def error_of(expression: str, data: Json = None) -> str:
    with pytest.raises(FunctionError) as caught:
        evaluated(expression, data)
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "data", "value"),
    [
        ("$.data.sum()", [3, 2, 1], 6),
        ("$.data.where($.age > 4).select($.name)", PERSONS, ["bob", "cy"]),
        ("$.data.select({n => $.name, a => $.age + 1}).first()", PERSONS, {"n": "ada", "a": 4}),
        ("$.data.orderByDescending($.name).name", PERSONS, ["cy", "bob", "ada"]),
        ("$.data.groupBy($.age, $.name)", PERSONS, [[3, ["ada"]], [5, ["bob", "cy"]]]),
        ("$.data.toDict($.name, $.age)", PERSONS, {"ada": 3, "bob": 5, "cy": 5}),
        ("$.data.toDict($.age, $.name)", PERSONS, {"3": "ada", "5": "cy"}),
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
def test_yaql_results(expression: str, data: Json, value: Json) -> None:
    assert evaluated(expression, data) == value


@pytest.mark.parametrize(
    ("expression", "data", "part"),
    [
        ("$.data.nope", {"a": 1}, 'the key "nope" does not exist'),
        ("$.data.a.b", {"a": 1}, 'there is no "b" in a value that is not a map'),
        ("nope(1)", None, 'Unknown function "nope"'),
        ("$.data.nope()", "its secret", 'Unknown method "nope"'),
        ("$.data.len(1, 2)", "its secret", 'No method "len" matches supplied arguments'),
        ("int($.data)", "its secret", "a string is not an integer"),
        ("float($.data)", "its secret", "a string is not a number"),
        ("int([1, 2])", None, "list is not an integer"),
        ("1 + $.data", "its secret", 'the operator "+" cannot be applied to its values'),
        ("dict([1])", None, "integer is not a list"),
        ("generateMany({$ => $}, $)", None, "a list or a map cannot be a key"),
        ("1 / 0", None, "by zero"),
        ("[].first()", None, "a collection has too few items, or too many"),
        ("[1][5]", None, ": an index is out of range"),
        ("def(f, f($)) -> f(1)", None, "it recurses too deeply"),
        ("range(201)", None, "Collection length exceeds 200 elements"),
        ("'a' * 20000", None, "Expression consumed too much memory"),
        ("[1, 2].assert($.len() > 2, 'three at least')", None, "three at least"),
        ("random()", None, 'The yaql function "random" cannot be used in a template'),
        ("call(now, [], {})", None, 'The yaql function "now" cannot be used in a template'),
        ("datetime('10:00')", None, "needs a year, a month and a day"),
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
def test_yaql_errors_have_reasons(expression: str, data: Json, part: str) -> None:
    message = error_of(expression, data)
    assert part in message and "secret" not in message


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("$.data.", "Bad expression Parse error: unexpected end of statement."),
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
def test_an_invalid_expression_is_reported_before_its_data_is_known(
    expression: str, part: str
) -> None:
    message = fault_of({"yaql": {"expression": expression, "data": {"get_attr": ["b", "output"]}}})
    assert message.startswith("resources.a.properties.value.yaql: ") and part in message


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ("$", 'Arguments to "yaql" must be a map.'),
        ({"data": 1}, '"yaql" syntax should be'),
        ({"expression": "$", "date": 1}, '"yaql" has no "date"'),
        ({"get_param": "p"}, '"yaql" syntax should be'),
        ({"expression": [1]}, 'The "expression" argument to yaql must contain a string.'),
    ],
)
def test_the_arguments_of_yaql_are_validated(args: Json, part: str) -> None:
    assert part in fault_of({"yaql": args})


def test_yaql_that_reads_a_resource_is_evaluated_later() -> None:
    data = {"x": {"get_attr": ["b", "output"]}}
    snippet = {"yaql": {"expression": "$.data.x.select($ * 2)", "data": data}}
    waiting = value_of(snippet)
    assert isinstance(waiting, FunctionCall)
    assert resolve(decode(encode(waiting), waiting.version), UniformView([1, 2])) == [2, 4]
    with pytest.raises(FunctionError, match="expression failed"):
        resolve(waiting, UniformView(3))
    text = value_of({"yaql": {"expression": {"get_attr": ["b", "output"]}}})
    assert resolve(text, UniformView("1 + 1")) == 2


def test_the_limits_at_acceptance_are_kept() -> None:
    snippet = {"yaql": {"expression": "range($.data).len()", "data": {"get_attr": ["b", "output"]}}}
    few = value_of(snippet, limits=CostLimits(yaql_elements=3))
    listed = {"yaql": {"expression": "range(5)"}}
    assert "exceeds 3 elements" in fault_of(listed, limits=CostLimits(yaql_elements=3))
    assert few.args["limits"] == [3, 10_000] and "limits" not in value_of(snippet).args
    assert resolve(few, UniformView(5)) == 5


def test_yaql_in_conditions() -> None:
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
    definition = defined(
        {
            "parameters": {"p": {"type": "string", "hidden": True}},
            "resources": {"a": thing(value=snippet)},
        },
        parameters={"p": "secret"},
    ).resources["a"]
    assert definition.properties["value"] == "secretx"
    assert definition.masked_properties == {"value": "******x"}


def test_iterations_of_a_lambda_count_as_steps() -> None:
    budget = CostBudget(steps=20_000)
    evaluated("range(100).join(range(100), false, 1).len()", budget=budget)
    assert budget.steps_left < 10_000


def test_one_expression_cannot_use_the_budget_of_the_template() -> None:
    budget = CostBudget(steps=100_000)
    with pytest.raises(FunctionError, match="more than the 20000 steps") as caught:
        evaluated("sequence().len()", budget=budget)
    assert not isinstance(caught.value, BudgetExceeded) and budget.steps_left == 80_000
    many: dict[str, Json] = {
        f"r{n}": thing(value={"yaql": {"expression": "sequence().take(200).len()"}})
        for n in range(20)
    }
    (finding,) = faults({"resources": many}, limits=CostLimits(steps=5_000))
    assert finding.code == "RequestLimitExceeded" and ".value.yaql" in finding.place


def test_expressions_are_parsed_one_at_a_time() -> None:
    """Two expressions that are parsed concurrently in threads do not interfere."""
    check_yaql("1 + 1", CostBudget())
    for _ in range(3):
        with pytest.raises(FunctionError):
            check_yaql("(1 +", CostBudget())
        check_yaql("(1 + 2)", CostBudget())
