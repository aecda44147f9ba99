"""Hooks with `watch`: their resource is observed while they wait, and a change asks again."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import orjson
import pytest
import pytest_asyncio

from engine.hooks.hook_watch import MAX_RENEWALS
from engine.work.observer.hook_watch import HookWatch
from engine.work.observer.observer import Observer
from tests.support.changes import error_text
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.paused_observers import paused_observer
from tests.support.program import Json, Program, program, template

WATCHED: Json = {"hooks": [{"at": "a", "on": "pre-update", "watch": True}]}


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture(scope="module", autouse=True)
def paused_hook_watches(paused_observers: None) -> Iterator[None]:
    """The observers of programs do not run, so that tests run their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HookWatch, "run", lambda self, stop: stop.wait())
        yield


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return HTTP_SETTINGS


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


def observer_of(run: Program) -> Observer:
    return Observer(run.database, paused_observer(run)[0])


async def look(run: Program, *, again: bool = True) -> int:
    """Observe what the watched hooks show; return their number. again: not only those that are
    due."""
    observer = observer_of(run)
    if again:
        due = "update hook set opened_at = now() - interval '1h', watched_at = null"
        await run.database.pool.execute(f"{due} where state = 'waiting'")
    count = await observer.hook_watch.make_due()
    await observer.observe_due()
    return count


async def waiting(run: Program, things: Things, environment: Json = WATCHED) -> tuple[Json, str]:
    """Create a stack and update it up to the hook; return the hook, and the ID of its object."""
    await run.create("s", {name: thing(things) for name in "ab"})
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    resources = {"a": thing(things, 2), "b": thing(things)}
    await run.update("s", "PUT", template=template(resources), environment=environment)
    (hook,) = await run.waiting_hooks("s")
    return hook, (await run.resources("s"))["a"]["physical_resource_id"]


async def events_of(run: Program, kind: str) -> list[Json]:
    history = await run.stack_request("GET", "s", "/history")
    return [one for one in history["events"] if one["type"] == f"headgate.hook.{kind}"]


async def test_a_change_withdraws_the_hook_and_asks_again(run: Program, things: Things) -> None:
    first, object_id = await waiting(run, things)
    assert (first["resource"]["drift"], first["resource"]["renewed"]) == (None, None)
    assert await look(run) == 1
    assert [one["id"] for one in await run.waiting_hooks("s")] == [first["id"]]
    things.objects[object_id]["size"] = 7
    await look(run)
    (second,) = await run.waiting_hooks("s")
    assert second["id"] != first["id"] and second["digest"] != first["digest"]
    drift = second["resource"]["drift"]
    assert drift["state"] == "changed"
    assert drift["differences"] == [{"path": "$.size", "desired": 1, "observed": 7}]
    reason = "the resource has changed: $.size"
    assert second["resource"]["renewed"] == {"times": 1, "previous": first["id"], "reason": reason}
    assert second["resource"]["changes"] == first["resource"]["changes"]
    _, old = await run.call("GET", f"/hooks/{first['id']}")
    assert (old["state"], old["reason"]) == ("superseded", reason)
    (closed,), waits = await events_of(run, "superseded"), await events_of(run, "waiting")
    assert closed["data"]["hook"]["reason"] == reason
    assert [one["data"]["hook"]["id"] for one in waits] == [first["id"], second["id"]]
    (node,) = (await run.stack_request("GET", "s", "/why"))["nodes"][:1]
    assert f"(asked again: {reason})" in node["sentence"]
    # The old hook cannot be answered anymore, the new one can.
    assert (await run.signal(first))[0] == 409
    assert (await run.signal(second, digest=second["digest"]))[0] == 200
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert things.objects[object_id]["size"] == 2


async def test_the_same_change_asks_once_and_its_end_asks_again(
    run: Program, things: Things
) -> None:
    first, object_id = await waiting(run, things)
    found = things.objects.pop(object_id)
    for _ in range(2):
        await look(run)
    (second,) = await run.waiting_hooks("s")
    assert second["resource"]["drift"]["state"] == "missing"
    assert second["resource"]["renewed"]["previous"] == first["id"]
    # A service that does not answer changes nothing.
    things.faults = [503]
    await look(run)
    assert [one["id"] for one in await run.waiting_hooks("s")] == [second["id"]]
    things.faults = []
    await run.database.pool.execute(
        "with requests as (delete from failed_request) delete from provider_failure"
    )
    things.objects[object_id] = found
    await look(run)
    (third,) = await run.waiting_hooks("s")
    assert third["resource"]["drift"] is None
    assert third["resource"]["renewed"]["reason"] == "the resource is as recorded again"
    assert third["resource"]["renewed"]["times"] == 2


async def test_a_reported_change_asks_again_at_once(run: Program, things: Things) -> None:
    """Neither the interval of the hook has passed, nor has its first observation been made."""
    first, object_id = await waiting(run, things)
    observer = observer_of(run)
    for size in (7, 8):
        things.objects[object_id]["size"] = size
        things.requests.clear()
        body = {"observations": [{"physical_resource_id": object_id}]}
        status, reported = await run.call("POST", "/observations", body)
        assert (status, reported["resources"]) == (202, 1), reported
        assert await observer.hook_watch.make_due() == 0  # the interval has not passed
        assert await observer.observe_due() == 1
        assert things.requests == {"list": 1}
        (second,) = await run.waiting_hooks("s")
        assert second["resource"]["renewed"]["previous"] == first["id"]
        (difference,) = second["resource"]["drift"]["differences"]
        assert difference["observed"] == size
        first = second


async def test_other_hooks_are_not_watched(run: Program, things: Things) -> None:
    rule = {"at": "a", "on": "pre-update"}
    first, object_id = await waiting(run, things, {"hooks": [rule]})
    things.objects[object_id]["size"] = 7
    assert await look(run) == 0
    await run.act("s", "observe")
    await look(run)
    assert [one["id"] for one in await run.waiting_hooks("s")] == [first["id"]]


async def test_the_rule_says_how_often_and_only_the_resource_is_observed(
    run: Program, things: Things
) -> None:
    await waiting(run, things)
    things.requests.clear()
    # It has just opened.
    assert await look(run, again=False) == 0
    assert await look(run) == 1
    assert await look(run, again=False) == 0
    assert things.requests == {"list": 1}


async def test_approvals_of_a_withdrawn_hook_do_not_count(run: Program, things: Things) -> None:
    rule = {"at": "a", "on": "pre-update", "watch": True, "approvals": 2}
    first, object_id = await waiting(run, things, {"hooks": [rule]})
    assert (await run.signal(first))[0] == 200
    things.objects[object_id]["size"] = 7
    await look(run)
    (second,) = await run.waiting_hooks("s")
    assert second["id"] != first["id"]
    assert second["approvals"] == {"needed": 2, "given": 0, "by": []}


async def test_an_object_that_always_changes_ends_the_renewals(
    run: Program, things: Things
) -> None:
    _, object_id = await waiting(run, things)
    for size in range(MAX_RENEWALS + 3):
        things.objects[object_id]["size"] = 10 + size
        await look(run)
    (last,) = await run.waiting_hooks("s")
    assert last["resource"]["renewed"]["times"] == MAX_RENEWALS
    assert last["resource"]["drift"]["differences"][0]["observed"] == 10 + MAX_RENEWALS - 1


async def test_two_observers_replace_a_hook_once(run: Program, things: Things) -> None:
    _, object_id = await waiting(run, things)
    things.objects[object_id]["size"] = 7
    watches = [observer_of(run).hook_watch for _ in range(3)]
    due = "update hook set opened_at = now() - interval '1h' where state = 'waiting'"
    await run.database.pool.execute(due)
    assert sum(await asyncio.gather(*(one.make_due() for one in watches))) == 1
    observe_page = observer_of(run)
    await observe_page.observe_due()
    stack_id = await run.database.pool.fetchval("select id from stack")
    await asyncio.gather(*(one.renew([stack_id]) for one in watches))
    assert len(await run.waiting_hooks("s")) == 1
    assert len(await events_of(run, "superseded")) == 1


async def test_a_newer_change_closes_the_new_hook(run: Program, things: Things) -> None:
    _, object_id = await waiting(run, things)
    things.objects[object_id]["size"] = 7
    await look(run)
    (second,) = await run.waiting_hooks("s")
    resources = {name: thing(things) for name in "ab"}
    await run.update("s", "PUT", template=template(resources), environment={})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    _, closed = await run.call("GET", f"/hooks/{second['id']}")
    assert closed["state"] == "superseded"


async def test_rules_of_the_operator_and_of_templates_watch(database_url: str) -> None:
    rules = [{"on": ["pre-update"], "at": "b", "watch": True}]
    settings = HTTP_SETTINGS | {"hooks.rules": rules}
    async with serve_things() as things, program(database_url, settings) as run:
        hooks = [{"on": "pre-update", "watch": True}]
        await run.create("s", {name: thing(things) for name in "ab"})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        updated = orjson.loads(orjson.dumps(thing(things, 2)).replace(b"${", b"$${"))
        resources = {"a": updated | {"hooks": hooks}, "b": updated}
        body = template(resources) | {"heat_template_version": "2026-12-01"}
        await run.update("s", "PUT", template=body)
        first = {one["resource_name"]: one for one in await run.waiting_hooks("s", 2)}
        for one in (await run.resources("s")).values():
            things.objects[one["physical_resource_id"]]["size"] = 7
        assert await look(run) == 2
        second = {one["resource_name"]: one for one in await run.waiting_hooks("s", 2)}
        assert set(second) == {"a", "b"}
        for name in "ab":
            assert second[name]["resource"]["renewed"]["previous"] == first[name]["id"]


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        ({"watch": "yes"}, ["watch", "is not a valid value", "true or false"]),
        ({"watch": True, "mode": "notify"}, ["watch", "not valid with mode notify"]),
        ({"watch": True, "on": "pre-create"}, ["watch", "not possible at pre-create"]),
        ({"watch": True, "on": ["pre-update", "post-delete"]}, ["not possible at post-delete"]),
    ],
)
async def test_a_rule_that_cannot_watch_is_refused(
    run: Program, things: Things, rule: Json, texts: Sequence[str]
) -> None:
    environment = {"hooks": [{"at": "a", "on": "pre-update", **rule}]}
    body: dict[str, Any] = {
        "stack_name": "s",
        "template": template({"a": thing(things)}),
        "environment": environment,
    }
    status, response = await run.call("POST", "/stacks", body)
    assert status == 400
    for text in texts:
        assert text in error_text(response["error"])
