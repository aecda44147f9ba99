"""An internal error at any stage of any loop, raised for one tenant: another tenant's stack, hook,
deliveries and stream complete meanwhile, and again after a restart with the error still there."""

import asyncio
import importlib
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from engine.store.database import Database
from tests.support.program import Http, Json, Program, eventually, program, resource
from tests.support.receiver import Receiver, until

BAD, GOOD = "bad", "good"
COMPLETED = "headgate.stack.create.completed"
RULE = {"at": "*", "on": "pre-create", "timeout": "1s", "on_timeout": "continue"}
QUICK: Mapping[str, Any] = {
    "engine.poll": "1s",
    "channels.webhook.attempts": 2,
    "retention.every": "1s",
    "retention.idempotency_keys": "1s",
}

#: Ids of the stacks of the tenant at fault.
OF_BAD: set[str] = set()

#: Whether a call is for the tenant at fault; arguments by name.
About = Callable[[dict[str, Any]], bool]


@dataclass
class Stage:
    """target: the function that raises an error. loop: whose log says so. about: for which calls;
    None: for the first few, whoever they are for. rule: of the tenants' hooks."""

    target: str
    loop: str
    about: About | None = None
    rule: Mapping[str, Json] = field(default_factory=lambda: RULE)


def _of(name: str, attribute: str = "project") -> About:
    """One value, or one of several, is of the tenant at fault."""

    def about(given: dict[str, Any]) -> bool:
        value = given[name]
        several = value if isinstance(value, (list, tuple)) else [value]
        return any(_read(one, attribute) == BAD for one in several)

    return about


def _read(value: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        value = value[name] if hasattr(value, "keys") else getattr(value, name)
    return value


STAGES = {
    "expire": Stage("engine.work.timers.apply", "deadlines", _of("verdicts", "held.project")),
    "remind": Stage(
        "engine.work.timers.reminder",
        "reminders",
        _of("held"),
        RULE | {"remind": "1s", "timeout": "2s"},
    ),
    "next deadline": Stage("engine.work.timers.next_deadline", "deadlines"),
    "next reminder": Stage("engine.work.timers.next_reminder", "reminders"),
    "select": Stage("channels.store.publish.is_for", "publish", _of("traits")),
    "read event": Stage("channels.store.publish._event", "publish", _of("row")),
    "publish": Stage(
        "channels.store.publish.insert_matches", "publish", _of("matches", "subscription.project")
    ),
    "claim": Stage("channels.delivery_queue.claim_keys", "lane"),
    "read claimed": Stage("channels.store.claim._pending_delivery", "lane", _of("row")),
    "write message": Stage("channels.attempt.cloud_event", "delivery", _of("project", "")),
    "delivery result": Stage("channels.attempt.delivery_result", "lane", _of("delivery")),
    "write results": Stage(
        "channels.result_writer.write_results",
        "settle",
        lambda given: any(str(one.key.stack_id) in OF_BAD for one in given["results"]),
    ),
    "sweep": Stage("channels.dispatcher.find_undeliverable", "sweep"),
    "backlog": Stage("channels.dispatcher.disable_over_limit", "backlog"),
    "stream page": Stage("channels.stream.feed.events_after", "feed", _of("project", "")),
    "stream event": Stage("channels.stream.feed.document", "feed", _of("item")),
    "purge": Stage(
        "engine.work.purge.purge", "purging", lambda given: given["kind"] == "idempotency_keys"
    ),
    "presence": Stage("engine.work.presence.beat", "presence"),
    "loop lag": Stage("hub.metrics.wait_at_most", "lag"),
}
#: So often an error is raised that is for no tenant.
FEW = 2
#: What the errors say: no line of the log does.
PLANTED = "planted-secret-93"


#: Stages that are tested in one program, one after the other.
LOOPS: Sequence[Sequence[str]] = (
    ("expire", "remind", "next deadline", "next reminder"),
    ("select", "read event", "publish"),
    ("claim", "read claimed", "write message", "delivery result"),
    ("write results",),
    ("sweep", "backlog", "stream page", "stream event"),
    ("purge", "presence", "loop lag"),
)


def test_every_stage_is_tested() -> None:
    assert {name for one in LOOPS for name in one} == set(STAGES)


def raise_at(patch: pytest.MonkeyPatch, stage: Stage) -> None:
    module, _, name = stage.target.rpartition(".")
    inner = getattr(importlib.import_module(module), name)
    signature, left = inspect.signature(inner), [FEW]

    def check(args: Any, named: Any) -> None:
        if stage.about is None:
            left[0] -= 1
            wanted = left[0] >= 0
        else:
            wanted = stage.about(signature.bind(*args, **named).arguments)
        if wanted:
            raise RuntimeError(PLANTED)

    async def waits(*args: Any, **named: Any) -> Any:
        check(args, named)
        return await inner(*args, **named)

    def computes(*args: Any, **named: Any) -> Any:
        check(args, named)
        return inner(*args, **named)

    patch.setattr(stage.target, waits if inspect.iscoroutinefunction(inner) else computes)


@asynccontextmanager
async def reading(run: Program, project: str) -> AsyncIterator[list[bytes]]:
    """The event stream of a project, as it comes."""
    lines: list[bytes] = []

    async def read(answer: aiohttp.ClientResponse) -> None:
        async for line in answer.content:
            lines.append(line)

    async with run.session.get(f"{run.url}/v1/{project}/events/stream") as answer:
        task = asyncio.create_task(read(answer))
        try:
            yield lines
        finally:
            task.cancel()
            await asyncio.wait([task])


async def subscribe(http: Http, receiver: Receiver) -> None:
    body = {"channel": "webhook", "target": f"{receiver.url}/{http.project}"}
    status, said = await http.call("POST", "/subscriptions", body)
    assert status == 201, said


async def create(http: Http, name: str, rule: Json = RULE) -> str:
    headers = {"Idempotency-Key": f"{http.project}-{name}"}
    body = {"stack_name": name, "environment": {"hooks": [dict(rule)]},
            "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}}}  # fmt: skip
    status, said = await http.call("POST", "/stacks", body, headers=headers)
    assert status == 201, said
    if http.project == BAD:
        OF_BAD.add(said["stack"]["id"])
    return str(said["stack"]["id"])


async def lives(run: Program, receiver: Receiver, name: str, rule: Json) -> None:
    """Both tenants' stacks begin; all that is of the other tenant completes."""
    bad, good = Http(run.session, run.url, BAD), Http(run.session, run.url, GOOD)
    async with reading(run, BAD), reading(run, GOOD) as lines:
        async with run.database.connection() as conn:
            await conn.execute("notify headgate_disabled")
        await create(bad, name, rule)
        stack_id = await create(good, name, rule)
        assert await good.until_ended(name) == "CREATE_COMPLETE"

        def arrived() -> list[Json]:
            events = [one.event for one in receiver.received if one.path.endswith(GOOD)]
            return [one for one in events
                    if one["type"] == COMPLETED and stack_id in one["source"]]  # fmt: skip

        async def told() -> bool:
            streamed = any(COMPLETED.encode() in one for one in lines)
            return bool(arrived()) and streamed

        await eventually(told)


@pytest.mark.parametrize("loops", [LOOPS[:2], LOOPS[2:4], LOOPS[4:]])
async def test_an_error_of_one_tenant_stops_no_other(
    database_url: str,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    loops: Sequence[Sequence[str]],
) -> None:
    monkeypatch.setattr("hub.program.loops.REPORT_INTERVAL", timedelta(seconds=1))
    names = [name for one in loops for name in one]
    with capture_logs() as logs:
        async with program(database_url, QUICK) as run:
            for project in (BAD, GOOD):
                await subscribe(Http(run.session, run.url, project), receiver)
            for name in names:
                logs.clear()
                with monkeypatch.context() as patch:
                    raise_at(patch, STAGES[name])
                    await lives(run, receiver, name.replace(" ", "-"), STAGES[name].rule)
                    await until(partial(_logged, logs, STAGES[name].loop), name)
                failed = [one for one in logs if one["event"].endswith(".failed")]
                assert {one["error"] for one in failed} == {"RuntimeError"}, name
        for name in names:
            raise_at(monkeypatch, STAGES[name])
        async with program(database_url, QUICK) as run:
            await lives(run, receiver, "restarted", RULE)
            assert (await run.call("GET", "//readyz"))[0] == 200


def _logged(logs: Sequence[Json], loop: str) -> bool:
    return any(one["event"] == f"{loop}.failed" for one in logs)


async def test_a_hook_that_cannot_expire_fails_with_its_stack(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_at(monkeypatch, STAGES["expire"])
    with capture_logs() as logs:
        async with program(database_url, QUICK) as run:
            bad = Http(run.session, run.url, BAD)
            await create(bad, "s")
            assert await bad.until_ended("s") == "CREATE_FAILED"
            (line,) = [one for one in logs if one["event"] == "deadlines.failed"]
            said = f"internal error {line['error_id']} (see the server's log)"
            stack = await bad.stack("s")
            assert said in stack["stack_status_reason"]
            (row,) = (await bad.at("GET", "s", "/resources"))["resources"]
            assert row["resource_status"] == "CREATE_FAILED"
            _, hooks = await bad.call("GET", "/hooks?state=expired")
            assert [one["reason"] for one in hooks["hooks"]] == [said]
            _, trail = await bad.call("GET", f"/hooks/{hooks['hooks'][0]['id']}/decisions")
            assert [one["kind"] for one in trail["decisions"]] == ["expired-reject"]
    assert PLANTED not in repr(logs)


@pytest.mark.parametrize("name", ["read claimed", "write results", "delivery result"])
async def test_a_delivery_at_fault_is_dead_with_the_errors_id(
    database_url: str,
    database: Database,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    raise_at(monkeypatch, STAGES[name])
    with capture_logs() as logs:
        async with program(database_url, QUICK) as run:
            bad = Http(run.session, run.url, BAD)
            await subscribe(bad, receiver)
            await create(bad, "s")

            async def dead() -> list[Json]:
                async with database.connection() as conn:
                    return [row["error"] for row in await conn.fetch(
                        "select error from delivery where state = 'dead' and hook_id is not null")]  # fmt: skip

            errors = await eventually(dead)
            assert await bad.until_ended("s") == "CREATE_COMPLETE"
    known = {f"internal error {one['error_id']} (see the server's log)"
             for one in logs if one["event"].endswith(".failed")}  # fmt: skip
    assert set(errors) <= known
