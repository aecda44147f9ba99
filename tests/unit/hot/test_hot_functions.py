"""Each function of the language: results, edge cases, and messages about wrong arguments."""

import hashlib

import pytest

from engine.hot.evaluation.resolver import evaluate_output, resolve
from engine.hot.expressions.expression import FunctionCall
from engine.words import Json
from tests.unit.hot.hot_support import UniformView, fault_of, faults, thing, value_of

REPLACE = "str_replace"


@pytest.mark.parametrize(
    ("snippet", "result"),
    [
        ({"list_join": [",", ["a", None, "b"]]}, "a,,b"),
        ({"list_join": [",", ["a"], None, [{"y": 1, "x": [2]}]]}, 'a,{"x": [2], "y": 1}'),
        ({REPLACE: {"template": "x y", "params": {"x": "y", "y": "z"}}}, "y z"),
        ({REPLACE: {"template": "a ab abc", "params": {"a": 1, "ab": 2, "abc": 3}}}, "1 2 3"),
        (
            {REPLACE: {"template": "n t m", "params": {"n": None, "t": True, "m": {"b": 1}}}},
            ' True {"b": 1}',
        ),
        ({REPLACE: {"template": "x.y", "params": {}}}, "x.y"),
        ({"str_replace_strict": {"template": "$a", "params": {"$a": "b"}}}, "b"),
        ({"str_replace_vstrict": {"template": "$a", "params": {"$a": 0}}}, "0"),
        ({"str_split": [",", "a,b"]}, ["a", "b"]),
        ({"str_split": [",", "a,b", 1]}, "b"),
        ({"str_split": [",", "a,b", -1]}, "b"),
        ({"str_split": [",", None]}, None),
        ({"str_split": [",", ""]}, [""]),
        ({"digest": ["MD5", "a"]}, "0cc175b9c0f1b6a831c399e269772661"),
        ({"digest": ["md5", "é"]}, hashlib.md5(b"\xe9").hexdigest()),
        ({"map_merge": [{"a": 1, "b": 1}, None, {"b": 2}]}, {"a": 1, "b": 2}),
        (
            {"map_replace": [{"a": "x", "b": [1]}, {"keys": {"a": "c"}, "values": {"x": "y"}}]},
            {"c": "y", "b": [1]},
        ),
        ({"filter": [["a"], ["a", "b", "a"]]}, ["b"]),
        ({"filter": [None, ["a"]]}, ["a"]),
        ({"filter": [["a"], None]}, None),
        ({"contains": ["b", "abc"]}, True),
        ({"contains": [1, [2]]}, False),
        ({"list_concat": [[1], None, [1, 2]]}, [1, 1, 2]),
        ({"list_concat_unique": [[1, {"a": 1}], [{"a": 1}, 2, 1]]}, [1, {"a": 1}, 2]),
        (
            {"repeat": {"template": "%a%-%b%", "for_each": {"%a%": ["1", "2"], "%b%": ["x", "y"]}}},
            ["1-x", "1-y", "2-x", "2-y"],
        ),
        (
            {
                "repeat": {
                    "template": "ab",
                    "permutations": False,
                    "for_each": {"a": ["1", "2"], "b": ["x", "y"]},
                }
            },
            ["1x", "2y"],
        ),
        ({"repeat": {"template": "%a%|%b%", "for_each": {"%a%": ["%b%"], "%b%": ["z"]}}}, ["z|z"]),
        (
            {"repeat": {"template": {"k%a%": [1, "%a%"]}, "for_each": {"%a%": {"x": 1}}}},
            [{"kx": [1, "x"]}],
        ),
        ({"repeat": {"template": "a", "for_each": {"a": None}}}, []),
        (
            {
                "make_url": {
                    "scheme": "http",
                    "host": "::1",
                    "port": 80,
                    "path": "a b",
                    "query": {"q": "a b/c"},
                    "fragment": "f",
                }
            },
            "http://[::1]:80/a%20b?q=a+b/c#f",
        ),
        (
            {"make_url": {"scheme": "ftp", "username": "u@", "password": "p/", "host": "h"}},
            "ftp://u%40:p%2F@h",
        ),
        ({"get_param": ["p", "l", 1]}, "y"),
        ({"get_param": ["p", "l", "1"]}, "y"),
        ({"get_param": ["p", "nope", 1]}, ""),
        ({"get_param": "OS::stack_name"}, "s"),
        ({"get_file": "f"}, "content"),
        ({"if": ["yes", 1, {"get_attr": ["nobody", "nothing"]}]}, 1),
        ([1, {"if": ["no", 2]}, 3], [1, 3]),
        ({"x": {"if": ["no", 2]}, "y": 1}, {"y": 1}),
        ({"list_join": ["", ["a", {"if": [{"not": "yes"}, "b"]}]]}, "a"),
        ({"if": ["no", 1]}, None),
        # unknown functions, and maps with more than one key, are data
        ({"equals": [1, 2]}, {"equals": [1, 2]}),
        ({"get_parm": "p"}, {"get_parm": "p"}),
        ({"get_param": "p", "x": 1}, {"get_param": "p", "x": 1}),
    ],
)
def test_results_of_functions(snippet: Json, result: Json) -> None:
    template = {
        "parameters": {"p": {"type": "json", "default": {"l": ["x", "y"]}}},
        "conditions": {"yes": True, "no": {"not": "yes"}},
    }
    if snippet == {"if": ["no", 1]}:
        from tests.unit.hot.hot_support import defined, thing

        definition = defined({**template, "resources": {"a": thing(value=snippet)}})
        assert "value" not in definition.resources["a"].properties
    else:
        assert value_of(snippet, template=template, files={"f": "content"}) == result


@pytest.mark.parametrize(
    ("snippet", "part"),
    [
        ({"list_join": [",", [1]]}, "Items to join must be string, map or list not 1"),
        ({"list_join": "x"}, 'Incorrect arguments to "list_join" should be'),
        ({"list_join": [",", "abc"]}, '"list_join" must operate on a list'),
        ({REPLACE: {"template": "x", "params": {"": "y"}}}, "empty text"),
        ({REPLACE: {"template": 5, "params": {}}}, "template must be a string"),
        ({REPLACE: {"template": None, "params": {}}}, "template must be a string"),
        ({REPLACE: {"template": "x"}}, 'Incorrect arguments to "str_replace"'),
        (
            {"str_replace_strict": {"template": "x", "params": {"$v": 1, "$long": 2}}},
            "The following params were not found in the template: $long,$v",
        ),
        (
            {"str_replace_vstrict": {"template": "$a", "params": {"$a": []}}},
            "undefined or empty value for param $a,",
        ),
        (
            {"str_split": [",", "a,b", 2]},
            'Incorrect index to "str_split" should be between 0 and 1',
        ),
        ({"str_split": [",", "a", "x"]}, "apples,pears"),
        ({"digest": ["nope", "a"]}, "Algorithm must be one of"),
        ({"digest": ["md5", "€"]}, "Latin-1"),
        ({"map_merge": ["a"]}, "takes maps"),
        (
            {"map_replace": [{"a": 1, "b": 2}, {"keys": {"a": "b"}}]},
            "collides with a key in the in",
        ),
        ({"map_replace": [{"a": 1, "b": 2}, {"keys": {"a": "c", "b": "c"}}]}, "in the output map"),
        ({"filter": [["a"]]}, '"filter" expected 2 arguments of the form'),
        ({"contains": ["a", {"a": 1}]}, "should be a sequence"),
        ({"list_concat": [[1], "a"]}, "must be lists"),
        ({"repeat": {"template": "a", "for_each": {}}}, "non-empty map"),
        ({"repeat": {"template": "a", "for_each": {"a": [1]}}}, "substitutes text, not 1"),
        (
            {
                "repeat": {
                    "template": "ab",
                    "permutations": False,
                    "for_each": {"a": ["1"], "b": []},
                }
            },
            "should be equal",
        ),
        ({"make_url": {"prot": 1}}, 'Invalid arguments to "make_url": prot'),
        ({"make_url": {"host": "h", "port": 65536}}, "must be in range 1-65535"),
        (
            {"make_url": {"host": {"get_attr": ["b", "output"]}, "port": "x"}},
            " called with {'host': {'get_attr': ['b', 'output']}, 'port': 'x'}",
        ),
        ({"get_param": "nope"}, "The Parameter (nope) was not provided."),
        ({"get_param": "OS::region"}, "The Parameter (OS::region) was not provided."),
        ({"get_file": "g"}, 'No content found in the "files" section for get_file path: g'),
        (
            {"get_resource": "bb"},
            'The specified reference "bb" (in a.Properties.value) is incorrect. Did you mean',
        ),
        (
            {"get_attr": ["bb", "output"]},
            'The specified reference "bb" (in a.Properties.value) is incorrect.',
        ),
        ({"get_attr": ["b", "outptu"]}, "The Referenced Attribute (b outptu) is incorrect."),
        ({"get_attr": "b"}, 'Argument to "get_attr" must be a list'),
        ({"if": ["nope", 1, 2]}, 'Invalid condition "nope"'),
        ({"if": [True]}, 'Arguments to "if" must be of the form'),
        (
            {"resource_facade": "metadata"},
            "and this stack is not nested. Give the value as a parameter",
        ),
        ({"Ref": "b"}, "The function Ref is not supported in this version of HOT."),
    ],
)
def test_wrong_arguments_of_functions_are_reported(snippet: Json, part: str) -> None:
    fault = fault_of(snippet)
    assert part in fault
    assert fault.startswith("resources.a.properties.value")


def test_a_message_that_quotes_arguments_withholds_a_hidden_parameter() -> None:
    url = {"host": "h", "port": "x", "password": {"get_param": "key"}}
    (found,) = faults(
        {
            "parameters": {"key": {"type": "string", "default": "k3y", "hidden": True}},
            "resources": {"a": thing(value={"make_url": url})},
        }
    )
    assert (found.reason, found.sentence) == ("Invalid URL port", "")


@pytest.mark.parametrize(
    ("version", "snippet", "data"),
    [
        ("2013-05-23", {"repeat": {"template": "a"}}, True),
        ("2015-04-30", {"repeat": {"template": "a"}}, False),
        ("2015-04-30", {"str_split": "x"}, True),
        ("2016-04-08", {"if": "x"}, True),
        ("2018-08-31", {"if": [True, 1]}, False),
        ("2015-04-30", {"list_join": [",", ["a"], ["b"]]}, False),
        ("2015-04-30", {"list_join": [",", [{"a": 1}]]}, False),
        ("2015-04-30", {REPLACE: {"template": "a", "params": {"a": [1]}}}, False),
        ("2015-04-30", {"get_attr": ["b"]}, False),
        ("2016-10-14", {"contains": "x"}, True),
        ("2016-04-08", {"repeat": {"template": "a", "for_each": {"a": {"x": 1}}}}, False),
    ],
)
def test_functions_depend_on_the_version(version: str, snippet: Json, data: bool) -> None:
    if data:
        assert value_of(snippet, version) == snippet
    else:
        assert fault_of(snippet, version)


def test_a_function_that_reads_a_resource_is_evaluated_later() -> None:
    snippet = {"list_join": ["-", [{"get_attr": ["b", "output", 1, "k"]}, {"get_resource": "b"}]]}
    expression = value_of(snippet)
    assert isinstance(expression, FunctionCall)
    assert resolve(expression, UniformView([0, {"k": "v"}])) == "v-ref-b"
    assert resolve(expression, UniformView([])) == "-ref-b"
    assert resolve(value_of({"get_attr": ["b"]}), UniformView(1)) == {"output": 1}
    assert resolve(value_of({"get_attr": ["b", "output", "0"]}), UniformView(["x"])) is None


def test_a_path_with_function_calls_into_a_parameter() -> None:
    template = {"parameters": {"p": {"type": "json", "default": {"k": "found"}}}}
    expression = value_of({"get_param": ["p", {"get_attr": ["b", "output"]}]}, template=template)
    assert resolve(expression, UniformView("k")) == "found"
    assert resolve(expression, UniformView("x")) == ""


def test_argument_types_are_checked_before_evaluation() -> None:
    assert "Incorrect arguments" in fault_of({"str_split": [{"get_resource": "b"}]})


def test_an_output_that_fails_has_an_error_text() -> None:
    expression = value_of({"list_join": [",", [{"get_attr": ["b", "output"]}]]})
    assert evaluate_output(expression, UniformView("x")) == ("x", None)
    value, error = evaluate_output(expression, UniformView(5))
    assert value is None and error is not None and "Items to join" in error


def test_a_result_that_grows_exponentially_is_refused() -> None:
    many = {"repeat": {"template": "a", "for_each": {c: ["x"] * 99 for c in "abc"}}}
    assert "more than 200000 items" in fault_of(many)
    long = {REPLACE: {"template": "a" * 5_000, "params": {"a": "b" * 5_000}}}
    assert "more than 1048576 characters" in fault_of(long)
    template = {"parameters": {"p": {"type": "string", "default": "x" * 1_000_000}}}
    message = fault_of([{"get_param": "p"}] * 20, template=template)
    assert "larger than" in message


def test_the_value_of_a_parameter_is_never_evaluated() -> None:
    template = {"parameters": {"p": {"type": "json", "default": {"get_resource": "x"}}}}
    assert value_of({"get_param": "p"}, template=template) == {"get_resource": "x"}
