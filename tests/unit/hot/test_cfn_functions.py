"""Each function of CloudFormation templates: results, edge cases, and messages about wrong
arguments.
"""

import pytest

from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import FunctionCall, decode, encode, referenced_resources
from engine.hot.functions.function import FunctionError
from engine.words import Json
from tests.unit.hot.cfn_support import AWS, HEAT, cfn, cfn_fault, cfn_thing, cfn_value
from tests.unit.hot.hot_support import UniformView, defined, fault_of, value_of

SELECT, JOIN, SPLIT, REPLACE = "Fn::Select", "Fn::Join", "Fn::Split", "Fn::Replace"
MEMBERS, FIND, ATT = "Fn::MemberListToMap", "Fn::FindInMap", "Fn::GetAtt"
MAPPINGS = {
    "m": {"ap-southeast-1": {"v": {"Ref": "data"}, "l": [1]}, "k": {"v": 5, "yes": True}},
    "listed": [{"v": 1}],
}

VALUES: list[tuple[Json, Json]] = [
    ({SELECT: ["1", ["a", "b"]]}, "b"),
    ({SELECT: [-1, ["a", "b"]]}, "b"),
    ({SELECT: ["7", ["a"]]}, ""),
    ({SELECT: ["0", []]}, ""),
    ({SELECT: [1.7, ["a", "b"]]}, "b"),
    ({SELECT: ["k", {"k": "v", "l": 1}]}, "v"),
    ({SELECT: ["q", {"k": "v"}]}, ""),
    ({SELECT: ["k", {"k": None, "l": 1}]}, None),
    ({SELECT: ["k", '{"k": [1]}']}, [1]),
    ({SELECT: ["k", ""]}, ""),
    ({SELECT: ["k", None]}, ""),
    ({JOIN: ["-", ["a", None, "b"]]}, "a--b"),
    ({JOIN: ["-", None]}, ""),
    ({SPLIT: [",", "a,b,"]}, ["a", "b", ""]),
    ({REPLACE: [{"$a": "1", "$ab": 2, "t": True, "n": None}, "$a $ab t n"]}, "1 2 True "),
    ({REPLACE: [{"x": "y", "y": "z"}, "x y"]}, "y z"),
    ({"Fn::Base64": "abc"}, "abc"),
    (
        {MEMBERS: ["N", "V", [".member.0.N=key", ".member.0.V=door=1", ".member.1.N=alone"]]},
        {"key": "door=1"},
    ),
    # numbers count as numbers, a later value wins, and unknown members are ignored
    (
        {
            MEMBERS: [
                "N",
                "V",
                ["x=1", ".member.2.N=b", ".member.2.V=a", ".member.02.V=d", ".member.02.N=c"],
            ]
        },
        {"c": "d"},
    ),
    ({MEMBERS: ["N", "V", [".member." + "9" * 5000 + ".N=a"]]}, {}),
    ({MEMBERS: ["N", "V", ""]}, {}),
    ({"Fn::GetAZs": {"Ref": "AWS::Region"}}, ["nova"]),
    ({FIND: ["m", "k", "v"]}, 5),
    ({FIND: ["listed", 0, "v"]}, 1),
    # content of a mapping is data and is not called
    ({FIND: ["m", {"Ref": "AWS::Region"}, "v"]}, {"Ref": "data"}),
    ({"Ref": "p"}, ["x", " y"]),
    ({"Ref": "AWS::StackName"}, "s"),
    ({"Ref": "AWS::StackId"}, "arn:openstack:heat::p:stacks/s/id"),
    # HOT functions, condition functions, and maps with more than one key are data
    ({"get_param": "p"}, {"get_param": "p"}),
    ({"Fn::Equals": [1, 1]}, {"Fn::Equals": [1, 1]}),
    ({"Ref": "p", "x": 1}, {"Ref": "p", "x": 1}),
]


@pytest.mark.parametrize("version", [AWS, HEAT])
@pytest.mark.parametrize(("snippet", "result"), VALUES)
def test_results_of_cloudformation_functions(version: str, snippet: Json, result: Json) -> None:
    parameters = {"p": {"Type": "CommaDelimitedList", "Default": "x, y"}}
    assert cfn_value(snippet, version, Parameters=parameters, Mappings=MAPPINGS) == result


def test_if_exists_in_the_newer_version_only() -> None:
    snippet = {"Fn::If": ["c", {"Ref": "b"}, {"Ref": "nobody"}]}
    value = cfn_value(snippet, Conditions={"c": {"Fn::Equals": [{"Ref": "AWS::StackName"}, "s"]}})
    assert value == FunctionCall("get_resource", "2010-09-09", "b")
    plain = {"Fn::If": [True, 1, 2]}
    assert cfn_value(plain) == 1 and cfn_value(plain, HEAT) == plain


WRONG_ARGUMENTS: list[tuple[Json, str]] = [
    ({SELECT: ["1"]}, 'Arguments to "Fn::Select" must be of the form [index, collection]'),
    ({SELECT: [1, {"1": "v"}]}, 'Index to "Fn::Select" must be a string'),
    ({SELECT: ["k", ["a"]]}, 'Index to "Fn::Select" must be an integer'),
    ({SELECT: ["k", "nope"]}, "the string is not valid JSON"),
    ({SELECT: ["0", "[18446744073709551616]"]}, "is too large; write it as text"),
    ({SELECT: ["k", "5"]}, '"Fn::Select" takes a list or a map, not a number'),
    ({SELECT: ["k", 5]}, '"Fn::Select" takes a list or a map, not a number'),
    ({JOIN: ["-", ["a", 1]]}, "Items to join must be strings not 1"),
    ({JOIN: ["-", "abc"]}, '"Fn::Join" must operate on a list'),
    ({JOIN: [1, ["a"]]}, '"Fn::Join" delimiter must be a string'),
    ({JOIN: ["-", ["a"], ["b"]]}, 'Incorrect arguments to "Fn::Join"'),
    ({SPLIT: ["", "a"]}, "Delimiter for Fn::Split must be"),
    ({SPLIT: [",", None]}, "The text to split must be a string, not null"),
    ({SPLIT: "ab"}, 'Incorrect arguments to "Fn::Split"'),
    ({REPLACE: ["a", "b"]}, '"Fn::Replace" parameters must be a mapping'),
    ({REPLACE: [{"a": [1]}, "a"]}, '"Fn::Replace" params must be strings or numbers, param a'),
    ({REPLACE: [{"a": "b"}, 5]}, '"Fn::Replace" template must be a string'),
    ({REPLACE: [{"": "b"}, "a"]}, '"Fn::Replace" cannot replace an empty text'),
    ({REPLACE: {"template": "a", "params": {}}}, 'Incorrect arguments to "Fn::Replace"'),
    ({"Fn::Base64": 5}, '"Fn::Base64" argument must be a string'),
    ({MEMBERS: ["N", "V"]}, 'Incorrect arguments to "Fn::MemberListToMap"'),
    ({MEMBERS: [1, "V", []]}, "Fn::MemberListToMap Key Name must be a string"),
    ({MEMBERS: ["N", 1, []]}, "Fn::MemberListToMap Value Name must be a string"),
    ({MEMBERS: ["N", "V", ["x"]]}, 'must have the form ".member.0.N=value"'),
    ({MEMBERS: ["N", "V", [5]]}, "Member list items must be strings"),
    ({MEMBERS: ["N", "V", None]}, "Member list must be a list"),
    ({FIND: ["m", "k"]}, 'Arguments to "Fn::FindInMap" must be of the form'),
    ({FIND: ["lister", "k", "v"]}, 'Mappings has no key "lister". Did you mean "listed"?'),
    (
        {FIND: ["m", "ap-southeast-2", "v"]},
        'Mappings.m has no key "ap-southeast-2". Did you mean "ap-',
    ),
    ({FIND: ["m", "k", "w"]}, 'Mappings.m.k has no key "w"'),
    ({FIND: [["m"], "k", "v"]}, 'Mappings has no key ["m"]'),
    ({FIND: ["listed", 1, "v"]}, "Mappings.listed has no key 1"),
    ({FIND: ["listed", -2, "v"]}, "Mappings.listed has no key -2"),
    ({"Ref": "bb"}, 'The specified reference "bb" (in a) is incorrect. Did you mean "b"?'),
    ({"Ref": ["b"]}, 'The argument of "Ref" must be the name of a parameter or of a resource'),
    ({ATT: ["b"]}, 'Arguments to "Fn::GetAtt" must be of the form [resource_name, attribute]'),
    ({ATT: ["b", "output", "x"]}, 'Arguments to "Fn::GetAtt"'),
    ({ATT: "b"}, 'Arguments to "Fn::GetAtt"'),
    ({ATT: ["c", "output"]}, 'The specified reference "c" (in a) is incorrect'),
    ({ATT: ["b", "outputs"]}, 'Attribute (b outputs) is incorrect. Did you mean "output"?'),
    ({"Fn::ResourceFacade": "metadata"}, "one of: Metadata, DeletionPolicy, UpdatePolicy"),
    ({"Fn::ResourceFacade": "Metadata"}, "and this stack is not nested"),
]


@pytest.mark.parametrize("version", [AWS, HEAT])
@pytest.mark.parametrize(("snippet", "part"), WRONG_ARGUMENTS)
def test_wrong_arguments_of_cloudformation_functions_are_reported(
    version: str, snippet: Json, part: str
) -> None:
    message = cfn_fault(snippet, version, Mappings=MAPPINGS)
    assert part in message
    assert message.startswith(f"Resources.a.Properties.value.{next(iter(snippet))}: ")


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        (5, 'Invalid condition "5"'),
        ("nope", 'Invalid condition "nope"'),
    ],
)
def test_wrong_arguments_of_if_are_reported(condition: Json, part: str) -> None:
    assert part in cfn_fault({"Fn::If": [condition, 1, 2]})
    assert 'Arguments to "Fn::If" must be of the form' in cfn_fault({"Fn::If": [True, 1]})


@pytest.mark.parametrize("written", [["b", "output"], "b.output"])
def test_attributes_wait_for_their_resource(written: Json) -> None:
    snippet = {JOIN: ["", ["<", {ATT: written}, ">"]]}
    value = cfn_value(snippet)
    assert referenced_resources(value) == {"b"}
    assert resolve(decode(encode(value), "2010-09-09"), UniformView("x")) == "<x>"
    assert resolve(cfn_value({"Ref": "b"}), UniformView()) == "ref-b"


@pytest.mark.parametrize("mapping", ["m", {SELECT: ["0", ["m"]]}, {ATT: ["b", "output"]}])
def test_a_mapping_is_read_when_its_key_is_known(mapping: Json) -> None:
    value = cfn_value(
        {FIND: [mapping, {ATT: ["b", "output"]}, "v"]}, Mappings={"m": {"m": {"v": 7}}}
    )
    stored = decode(encode(value), "2010-09-09")
    assert resolve(stored, UniformView("m")) == 7
    with pytest.raises(FunctionError, match="Mappings has no value for these keys"):
        resolve(stored, UniformView("n"))


def test_a_hidden_value_is_in_no_message() -> None:
    secret = {"Type": "String", "Default": "s3cret", "NoEcho": True}
    for snippet in (
        {FIND: ["m", {"Ref": "p"}, "v"]},
        {SPLIT: [",", [{"Ref": "p"}]]},
        {SELECT: ["k", {"Ref": "p"}]},
        {"Fn::If": [{"Fn::Equals": [{FIND: ["m", {"Ref": "p"}, "v"]}, 1]}, 1, 2]},
    ):
        message = cfn_fault(snippet, Parameters={"p": secret}, Mappings=MAPPINGS)
        assert "s3cret" not in message and message


@pytest.mark.parametrize(
    ("snippet", "shown"),
    [
        ([{"Ref": "p"}, {FIND: ["m", "k", "v"]}], ["******", 5]),
        ({FIND: ["m", {"Ref": "p"}, "v"]}, "******"),
        ({JOIN: ["-", [{"Ref": "p"}]]}, "******"),
    ],
)
def test_values_computed_from_a_hidden_value_are_masked(snippet: Json, shown: Json) -> None:
    template = cfn(
        Parameters={"p": {"Type": "String", "Default": "k", "NoEcho": True}},
        Mappings=MAPPINGS,
        Resources={"a": cfn_thing(value=snippet)},
    )
    assert defined(template).resources["a"].masked_properties == {"value": shown}


def test_a_large_mapping_that_is_read_often_is_refused() -> None:
    large = {"m": {"k": {"v": "x" * 100_000}}}
    for key in ("k", {ATT: ["b", "output"]}):
        message = cfn_fault([{FIND: ["m", key, "v"]}] * 300, Mappings=large)
        assert "larger than" in message


HOT_VALUES: list[tuple[Json, Json]] = [
    ({"Ref": "p"}, "P"),
    ({"Ref": "OS::stack_name"}, "s"),
    ({JOIN: ["", ["a", "b"]]}, "ab"),
    ({SPLIT: [",", "a,b"]}, ["a", "b"]),
    ({REPLACE: [{"a": "b"}, "a"]}, "b"),
    ({"Fn::Base64": "x"}, "x"),
    ({MEMBERS: ["N", "V", [".member.0.N=a", ".member.0.V=b"]]}, {"a": "b"}),
    ({"Fn::GetAZs": ""}, ["nova"]),
]


@pytest.mark.parametrize(("snippet", "result"), HOT_VALUES)
def test_the_first_hot_version_has_most_functions_and_later_ones_refuse_them(
    snippet: Json, result: Json
) -> None:
    template = {"parameters": {"p": {"type": "string", "default": "P"}}}
    assert value_of(snippet, "2013-05-23", template=template) == result
    for version in ("2014-10-16", "2021-04-16"):
        refused = f"The function {next(iter(snippet))} is not supported in this version of HOT."
        assert refused in fault_of(snippet, version, template=template)


def test_no_hot_version_has_the_other_functions() -> None:
    for snippet in ({ATT: ["b", "output"]}, {FIND: ["m", "k", "v"]}, {"Fn::If": [True, 1, 2]}):
        assert value_of(snippet, "2013-05-23") == snippet
    assert "AWS::Region" in fault_of({"Ref": "AWS::Region"}, "2013-05-23")


def test_select_is_in_more_hot_versions() -> None:
    snippet = {SELECT: ["0", ["a"]]}
    for version in ("2013-05-23", "2014-10-16", "2015-04-30"):
        assert value_of(snippet, version) == "a"
    assert "Fn::Select is not supported" in fault_of(snippet, "2015-10-15")
