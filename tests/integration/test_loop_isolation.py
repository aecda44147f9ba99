"""An internal error at any stage of any loop, for one project: stack, hook, deliveries and stream
of another project complete meanwhile, and again after a restart while the error persists.
"""

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
#: Its hooks are sent and wait for no deadline.
NOTIFY_RULE = {"at": "*", "on": "pre-create", "mode": "notify"}
QUICK: Mapping[str, Any] = {
    "engine.poll": "1s",
    "channels.webhook.attempts": 2,
    "retention.every": "1s",
    "retention.idempotency_keys": "1s",
}

#: IDs of the stacks of the failing project.
OF_BAD: set[str] = set()

#: Whether a call is for the failing project; arguments by name.
Predicate = Callable[[dict[str, Any]], bool]


@dataclass
class Stage:
    """target: the function that raises. loop: whose log has the error. about: for which calls;
    None: for the first few calls. rule: of the projects' hooks.
    """

    target: str
    loop: str
    about: Predicate | None = None
    rule: Mapping[str, Json] = field(default_factory=lambda: NOTIFY_RULE)


def _of(name: str, attribute: str = "project") -> Predicate:
    """A value, or one of several, belongs to the failing project."""

    def about(entry: dict[str, Any]) -> bool:
        value = entry[name]
        several = value if isinstance(value, (list, tuple)) else [value]
        return any(_read(one, attribute) == BAD for one in several)

    return about


def _read(value: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        value = value[name] if hasattr(value, "keys") else getattr(value, name)
    return value


STAGES = {
    "expire": Stage("engine.work.timers.apply", "deadlines", _of("verdicts", "hook.project"), RULE),
    "remind": Stage(
        "engine.work.timers.reminder",
        "reminders",
        _of("hook"),
        RULE | {"remind": "1s", "timeout": "2s"},
    ),
    "next deadline": Stage("engine.work.timers.next_deadline", "deadlines", rule=RULE),
    "next reminder": Stage("engine.work.timers.next_reminder", "reminders", rule=RULE),
    "select": Stage("channels.store.publish.is_for", "publish", _of("traits")),
    "read event": Stage("channels.store.publish._event", "publish", _of("row")),
    "publish": Stage(
        "channels.store.publish.insert_matches", "publish", _of("matches", "subscription.project")
    ),
    "claim": Stage("channels.delivery_queue.claim_keys", "delivery_queue"),
    "read claimed": Stage("channels.store.claim._pending_delivery", "delivery_queue", _of("row")),
    "write message": Stage("channels.attempt.cloud_event", "delivery", _of("project", "")),
    "delivery result": Stage("channels.attempt.delivery_result", "delivery_queue", _of("delivery")),
    "write results": Stage(
        "channels.result_writer.write_results",
        "delivery_results",
        lambda entry: any(str(one.key.stack_id) in OF_BAD for one in entry["results"]),
    ),
    "sweep": Stage("channels.dispatcher.find_undeliverable", "undeliverable"),
    "backlog": Stage("channels.dispatcher.disable_over_limit", "backlog"),
    "stream page": Stage("channels.stream.events_after", "stream", _of("project", "")),
    "stream event": Stage("channels.stream.document", "stream", _of("item")),
    "purge": Stage(
        "engine.work.purge.purge", "purge", lambda entry: entry["kind"] == "idempotency_keys"
    ),
    "presence": Stage("engine.work.presence.report", "presence"),
    "loop lag": Stage("hub.metrics.wait_at_most", "lag"),
}
#: The number of errors that are for no project.
ERROR_COUNT = 2
#: The text of the errors, which no log line contains.
ERROR_TEXT = "planted-secret-93"


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
    signature, left = inspect.signature(inner), [ERROR_COUNT]

    def check(args: Any, named: Any) -> None:
        if stage.about is None:
            left[0] -= 1
            wanted = left[0] >= 0
        else:
            wanted = stage.about(signature.bind(*args, **named).arguments)
        if wanted:
            raise RuntimeError(ERROR_TEXT)

    async def waits(*args: Any, **named: Any) -> Any:
        check(args, named)
        return await inner(*args, **named)

    def computes(*args: Any, **named: Any) -> Any:
        check(args, named)
        return inner(*args, **named)

    patch.setattr(stage.target, waits if inspect.iscoroutinefunction(inner) else computes)


@asynccontextmanager
async def read_stream(run: Program, project: str) -> AsyncIterator[list[bytes]]:
    """The event stream of a project."""
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
    status, response = await http.call("POST", "/subscriptions", body)
    assert status == 201, response


async def create(http: Http, name: str, rule: Json = RULE) -> str:
    headers = {"Idempotency-Key": f"{http.project}-{name}"}
    body = {"stack_name": name, "environment": {"hooks": [dict(rule)]},
            "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}}}  # fmt: skip
    status, response = await http.call("POST", "/stacks", body, headers=headers)
    assert status == 201, response
    if http.project == BAD:
        OF_BAD.add(response["stack"]["id"])
    return str(response["stack"]["id"])


async def run_stacks(run: Program, receiver: Receiver, name: str, rule: Json) -> None:
    """Create the stacks of both projects; the other project's stack completes with all
    its effects.
    """
    failing_project, other_project = (
        Http(run.session, run.url, BAD),
        Http(run.session, run.url, GOOD),
    )
    async with read_stream(run, BAD), read_stream(run, GOOD) as lines:
        async with run.database.connection() as conn:
            await conn.execute("notify headgate_disabled")
        await create(failing_project, name, rule)
        stack_id = await create(other_project, name, rule)
        assert await other_project.until_ended(name) == "CREATE_COMPLETE"

        def is_delivered() -> bool:
            events = [one.event for one in receiver.received if one.path.endswith(GOOD)]
            return any(one["type"] == COMPLETED and stack_id in one["source"] for one in events)

        def is_streamed() -> bool:
            return any(COMPLETED.encode() in one for one in lines)

        await until(is_delivered, f"{name}: {COMPLETED} is delivered")
        await until(is_streamed, f"{name}: {COMPLETED} is in the stream")


@pytest.mark.parametrize("loops", [LOOPS[:2], LOOPS[2:4], LOOPS[4:]])
async def test_an_error_of_one_project_does_not_stop_another(
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
                    await run_stacks(run, receiver, name.replace(" ", "-"), STAGES[name].rule)
                    await until(partial(_logged, logs, STAGES[name].loop), name)
                failed = [one for one in logs if one["event"].endswith(".failed")]
                assert {one["error"] for one in failed} == {"RuntimeError"}, name
        for name in names:
            raise_at(monkeypatch, STAGES[name])
        async with program(database_url, QUICK) as run:
            await run_stacks(run, receiver, "restarted", RULE)
            assert (await run.call("GET", "//readyz"))[0] == 200


def _logged(logs: Sequence[Json], loop: str) -> bool:
    return any(one["event"] == f"{loop}.failed" for one in logs)


async def test_a_hook_that_cannot_expire_fails_with_its_stack(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_at(monkeypatch, STAGES["expire"])
    with capture_logs() as logs:
        async with program(database_url, QUICK) as run:
            failing_project = Http(run.session, run.url, BAD)
            await create(failing_project, "s")
            assert await failing_project.until_ended("s") == "CREATE_FAILED"
            (line,) = [one for one in logs if one["event"] == "deadlines.failed"]
            message = f"internal error {line['error_id']} (see the server's log)"
            stack = await failing_project.stack("s")
            assert message in stack["stack_status_reason"]
            (row,) = (await failing_project.stack_request("GET", "s", "/resources"))["resources"]
            assert row["resource_status"] == "CREATE_FAILED"
            _, hooks = await failing_project.call("GET", "/hooks?state=expired")
            assert [one["reason"] for one in hooks["hooks"]] == [message]
            _, trail = await failing_project.call(
                "GET", f"/hooks/{hooks['hooks'][0]['id']}/decisions"
            )
            assert [one["kind"] for one in trail["decisions"]] == ["expired-reject"]
    assert ERROR_TEXT not in repr(logs)


@pytest.mark.parametrize("name", ["read claimed", "write results", "delivery result"])
async def test_a_failing_delivery_is_dead_with_the_errors_id(
    database_url: str,
    database: Database,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    raise_at(monkeypatch, STAGES[name])
    with capture_logs() as logs:
        async with program(database_url, QUICK) as run:
            failing_project = Http(run.session, run.url, BAD)
            await subscribe(failing_project, receiver)
            await create(failing_project, "s")

            async def is_dead() -> list[Json]:
                async with database.connection() as conn:
                    return [row["error"] for row in await conn.fetch(
                        "select error from delivery where state = 'dead' and hook_id is not null")]  # fmt: skip

            errors = await eventually(is_dead)
            assert await failing_project.until_ended("s") == "CREATE_COMPLETE"
    known = {f"internal error {one['error_id']} (see the server's log)"
             for one in logs if one["event"].endswith(".failed")}  # fmt: skip
    assert set(errors) <= known
