"""Quiet hours in the HTTP API of subscriptions."""

import pytest

from tests.support.changes import error_text
from tests.support.program import Json, Program, program

TARGET = "http://127.0.0.1:9/room"
NIGHT = {"from": "22:00", "to": "07:00", "timezone": "Europe/Berlin", "days": ["mon-wed"]}
STORED = NIGHT | {"days": ["mon", "tue", "wed"]}


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


async def created(run: Program, **more: Json) -> Json:
    body = {"channel": "slack", "target": TARGET, **more}
    status, response = await run.call("POST", "/subscriptions", body)
    assert status == 201, response
    return response


async def test_they_are_created_listed_changed_and_removed(run: Program) -> None:
    one = await created(run, quiet_hours=NIGHT)
    assert (one["quiet_hours"], one["ordered"]) == (STORED, False)
    path = f"/subscriptions/{one['id']}"
    _, listed = await run.call("GET", "/subscriptions")
    assert [each["quiet_hours"] for each in listed["subscriptions"]] == [STORED]
    _, same = await run.call("PATCH", path, {"events": ["headgate.hook.*"]})
    assert same["quiet_hours"] == STORED
    later = {"from": "23:00", "to": "06:30"}
    _, changed = await run.call("PATCH", path, {"quiet_hours": later})
    assert changed["quiet_hours"]["from"] == "23:00"
    assert changed["quiet_hours"]["timezone"] == "UTC"
    _, removed = await run.call("PATCH", path, {"quiet_hours": None})
    assert removed["quiet_hours"] is None
    status, ordered = await run.call("PATCH", path, {"ordered": True})
    assert (status, ordered["ordered"]) == (200, True)


async def test_subscriptions_of_the_operator_have_them(database_url: str) -> None:
    section = {"project": "default", "channel": "slack", "target": TARGET, "ordered": False}
    for quiet_hours, stored in ((NIGHT, STORED), ({}, None)):
        settings = {"subscriptions": [section | {"quiet_hours": quiet_hours}]}
        async with program(database_url, settings) as run:
            _, listed = await run.call("GET", "//v1/default/subscriptions")
        (one,) = listed["subscriptions"]
        assert (one["origin"], one["quiet_hours"]) == ("configuration", stored)


async def test_new_quiet_hours_end_the_order(run: Program) -> None:
    one = await created(run)
    assert (one["quiet_hours"], one["ordered"]) == (None, True)
    path = f"/subscriptions/{one['id']}"
    _, changed = await run.call("PATCH", path, {"quiet_hours": NIGHT})
    assert (changed["quiet_hours"], changed["ordered"]) == (STORED, False)
    status, response = await run.call("PATCH", path, {"ordered": True})
    assert status == 400
    assert "ordered deliveries" in error_text(response["error"])


async def test_digests_are_created_changed_and_removed(run: Program) -> None:
    one = await created(run, digest="15m")
    period = {"every": "15m", "at": None, "timezone": None}
    assert (one["digest"], one["quiet_hours"], one["ordered"]) == (period, None, False)
    path = f"/subscriptions/{one['id']}"
    daily = {"every": "daily", "at": "08:00", "timezone": "Europe/Berlin"}
    _, changed = await run.call("PATCH", path, {"digest": daily, "quiet_hours": NIGHT})
    assert (changed["digest"], changed["quiet_hours"]) == (daily, STORED)
    _, same = await run.call("PATCH", path, {"events": ["headgate.hook.*"]})
    assert same["digest"] == daily
    status, response = await run.call("PATCH", path, {"ordered": True})
    assert status == 400
    assert "digest" in error_text(response["error"])
    _, removed = await run.call("PATCH", path, {"digest": None, "quiet_hours": None})
    assert removed["digest"] is None
    assert (await run.call("PATCH", path, {"ordered": True}))[0] == 200
    _, again = await run.call("PATCH", path, {"digest": "1h"})
    assert (again["digest"]["every"], again["ordered"]) == ("1h", False)


async def test_subscriptions_of_the_operator_have_digests(database_url: str) -> None:
    section = {"project": "default", "channel": "slack", "target": TARGET, "ordered": False}
    for digest, every in (("daily", "daily"), ({"every": "1h"}, "1h"), ("", None)):
        settings = {"subscriptions": [section | {"digest": digest}]}
        async with program(database_url, settings) as run:
            _, listed = await run.call("GET", "//v1/default/subscriptions")
        (one,) = listed["subscriptions"]
        assert (one["digest"] or {}).get("every") == every


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"channel": "webhook", "digest": "15m"}, 'for the channel "webhook"'),
        ({"ordered": True, "digest": "15m"}, "ordered deliveries"),
        ({"digest": "20m"}, '"20m" is not a period'),
        ({"digest": {"every": "1h", "at": "08:00"}}, "digest.at"),
        ({"channel": "webhook", "quiet_hours": NIGHT}, 'for the channel "webhook"'),
        ({"ordered": True, "quiet_hours": NIGHT}, "ordered deliveries"),
        ({"quiet_hours": NIGHT | {"from": "late"}}, "quiet_hours.from"),
        ({"quiet_hours": NIGHT | {"zone": "UTC"}}, "quiet_hours.zone"),
    ],
)
async def test_refused(run: Program, more: Json, reason: str) -> None:
    body = {"channel": "slack", "target": TARGET, **more}
    status, response = await run.call("POST", "/subscriptions", body)
    assert status == 400
    assert reason in error_text(response["error"])
