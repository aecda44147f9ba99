"""The requests of the types of Aodh."""

from typing import Any

import orjson
import pytest

from engine.types.contract import Done, Failed, Outcome
from tests.unit.types.calls import a_call, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
EVENT, COMPOSITE = "OS::Aodh::EventAlarm", "OS::Aodh::CompositeAlarm"
PROMETHEUS = "OS::Aodh::PrometheusAlarm"
ID = "11111111-1111-4111-8111-111111111111"
CREATED = {"alarm_id": ID, "name": "mine"}


async def outcome(
    operation: str, web: Answers, name: str, properties: Json, **more: Json
) -> Outcome:
    type_ = type_with(web, name)
    return await run(type_, operation, a_call(type_, properties, credential="t", **more))


def body(web: Answers, number: int) -> Json:
    return orjson.loads(web.requests[number].body or b"")


@pytest.mark.parametrize(
    ("name", "properties", "rule"),
    [
        (EVENT, {}, {"event_rule": {"event_type": "*"}}),
        (
            PROMETHEUS,
            {"query": "up", "threshold": 1},
            {"prometheus_rule": {"query": "up", "threshold": 1}},
        ),
        (
            COMPOSITE,
            {"composite_rule": {"operator": "and", "rules": [{"a": 1}, {"b": 1}]}},
            {"composite_rule": {"and": [{"a": 1}, {"b": 1}]}},
        ),
    ],
    ids=["event", "prometheus", "composite"],
)
async def test_a_rule_has_the_properties_of_its_kind(
    name: str, properties: Json, rule: Json
) -> None:
    web = Answers(answer(201, CREATED))
    done = await outcome("create", web, name, properties)
    assert isinstance(done, Done) and done.physical_id == ID
    sent = body(web, 0)
    assert {key: one for key, one in sent.items() if key.endswith("_rule")} == rule
    assert sent["enabled"] is True and sent["repeat_actions"] is True
    assert sent["type"] == next(iter(rule)).removesuffix("_rule")


async def test_queues_are_actions_with_a_trust() -> None:
    web = Answers(answer(201, CREATED))
    given = {"alarm_actions": ["http://a"], "alarm_queues": ["q"], "ok_queues": ["o"]}
    assert isinstance(await outcome("create", web, EVENT, given), Done)
    sent = body(web, 0)
    assert sent["alarm_actions"] == ["http://a", "trust+zaqar://?queue_name=q"]
    assert sent["ok_actions"] == ["trust+zaqar://?queue_name=o"]
    assert sent["insufficient_data_actions"] == [] and "alarm_queues" not in sent


async def test_a_repeated_create_finds_its_alarm_by_name() -> None:
    type_ = type_with(Answers(), EVENT)
    name = a_call(type_, {}).own_name
    web = Answers(answer(200, [{"alarm_id": "other", "name": "other"}, {**CREATED, "name": name}]))
    done = await outcome("create", web, EVENT, {}, repeated=True)
    assert isinstance(done, Done) and done.physical_id == ID
    assert f"q.field=name&q.op=eq&q.value={name}" in web.requests[0].url


@pytest.mark.parametrize(("operation", "enabled"), [("suspend", False), ("resume", True)])
async def test_a_suspended_alarm_is_disabled(operation: str, enabled: bool) -> None:
    web = Answers(answer(200, CREATED), answer(200, CREATED))
    done = await outcome(operation, web, EVENT, {}, physical_id=ID, previous={})
    assert isinstance(done, Done)
    assert (web.requests[1].method, body(web, 1)["enabled"]) == ("PUT", enabled)
    assert body(web, 1)["name"] == "mine"


async def test_an_update_clears_a_removed_description() -> None:
    web = Answers(answer(200, CREATED), answer(200, CREATED))
    known = {
        "physical_id": ID,
        "previous": {"description": "d"},
        "changed": frozenset({"description"}),
    }
    assert isinstance(await outcome("update", web, EVENT, {}, **known), Done)
    assert body(web, 1)["description"] == ""


@pytest.mark.parametrize(
    ("times", "sent"),
    [({"evaluate_timestamp": "E", "timestamp": "T"}, "E"),
     ({"evaluate_timestamp": None, "timestamp": "T"}, "T"), ({}, None)],
    ids=["known", "lost", "event"],
)  # fmt: skip
async def test_an_update_keeps_the_time_of_the_last_evaluation(times: Json, sent: Json) -> None:
    """Aodh never evaluates an alarm without it again."""
    web = Answers(answer(200, {**CREATED, **times}), answer(200, CREATED))
    known = {"physical_id": ID, "previous": {}, "changed": frozenset({"severity"})}
    assert isinstance(await outcome("update", web, EVENT, {"severity": "low"}, **known), Done)
    assert body(web, 1).get("evaluate_timestamp") == sent


async def test_a_failure_has_the_words_of_aodh() -> None:
    refused = answer(401, {"error_message": {"faultcode": "Client", "faultstring": "not you"}})
    failed = await outcome("create", Answers(refused, refused), EVENT, {})
    assert isinstance(failed, Failed) and "not you (HTTP 401)" in failed.reason


#: As keystoneauth writes it, and Aodh repeats it.
REFUSED_TRUST = (
    "You are not authorized to perform the requested action: Delegated tokens cannot manage trusts."
    " (HTTP 403) (Request-ID: req-1)"
)


@pytest.mark.parametrize(
    ("status", "message", "action", "is_trust"),
    [
        (500, REFUSED_TRUST, "trust+http://a", True),
        (500, REFUSED_TRUST, "http://a", False),
        (500, "the metric is of another project (HTTP 403)", "trust+http://a", False),
        (403, "Alarm quota exceeded for project p", "trust+http://a", False),
        (403, "You are not authorized to perform the requested action", "trust+http://a", False),
    ],
    ids=["trust", "no trust", "another service", "quota", "policy"],
)
async def test_only_a_trust_that_keystone_refuses_is_reported_as_one(
    status: int, message: str, action: str, is_trust: bool
) -> None:
    refused = answer(status, {"error_message": {"faultstring": message}})
    ended = await outcome("create", Answers(refused), EVENT, {"alarm_actions": [action]})
    assert isinstance(ended, Failed) and message in ended.reason
    assert ("Keystone refused the trust" in ended.reason) == is_trust
    assert ended.retry == (status == 500 and not is_trust)
