"""OS::Heat::Value: conversions, in place, no value in a message."""

import pytest

from engine.types.contract import Done, Failed
from engine.types.value import Value
from engine.words import Json
from tests.unit.types.calls import a_call, findings_of

TYPE = Value()


@pytest.mark.parametrize(
    ("kind", "given_value", "value"),
    [
        (None, {"a": [1]}, {"a": [1]}),
        (None, 0, 0),
        ("string", 3, "3"),
        ("string", True, "true"),
        ("string", "x", "x"),
        ("string", {"a": 1}, '{"a":1}'),
        ("number", "3", 3),
        ("number", "3.5", 3.5),
        ("number", 3, 3),
        ("number", "1e3", 1000.0),
        ("comma_delimited_list", "a,b", ["a", "b"]),
        ("comma_delimited_list", "", []),
        ("comma_delimited_list", [{"a": 1}, "b"], [{"a": 1}, "b"]),
        ("json", '{"a": [1, null]}', {"a": [1, None]}),
        ("json", [1], [1]),
        ("boolean", "True", True),
        ("boolean", "off", False),
        ("boolean", False, False),
    ],
)
def test_values_are_converted(kind: str | None, given_value: Json, value: Json) -> None:
    properties = {"value": given_value} | ({"type": kind} if kind else {})
    assert findings_of(TYPE, properties) == []
    outcome = TYPE.create(a_call(TYPE, properties))
    assert isinstance(outcome, Done)
    assert outcome.attributes == {"value": value}
    assert type(outcome.attributes["value"]) is type(value)


@pytest.mark.parametrize(
    ("kind", "given_value"),
    [
        ("number", "hunter2"),
        ("number", "9" * 30),
        ("number", "nan"),
        ("number", ["hunter2"]),
        ("number", True),
        ("comma_delimited_list", {"hunter2": 1}),
        ("json", "{hunter2"),
        ("json", '"hunter2 \\u0000"'),
        ("json", '{"hunter2\\u0000": [1]}'),
        ("boolean", "hunter2"),
    ],
)
def test_an_inconvertible_value_is_refused_and_not_shown(kind: str, given_value: Json) -> None:
    properties = {"value": given_value, "type": kind}
    (finding,) = findings_of(TYPE, properties)
    outcome = TYPE.create(a_call(TYPE, properties))
    assert isinstance(outcome, Failed)
    for text in (str(finding), outcome.reason):
        assert "hunter2" not in text
        assert "9999" not in text


def test_a_change_is_an_update_in_place() -> None:
    call = a_call(TYPE, {"value": "2", "type": "number"}, physical_id="id", previous={"value": 1})
    outcome = TYPE.update(call)
    assert isinstance(outcome, Done)
    assert (outcome.physical_id, outcome.attributes) == ("id", {"value": 2})
    assert all(one.update_allowed for one in TYPE.schema.properties.values())
