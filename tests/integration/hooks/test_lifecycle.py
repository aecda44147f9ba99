"""Lifecycle plug-ins run before and after every action of every stack."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from engine.lifecycle.contract import Ended, LifecyclePlugin, Refused, StackView
from engine.types.contract import Failed
from tests.support.changes import put, thing, until_deleted
from tests.support.program import Program, eventually, program
from tests.support.scripted_type import Thing, World


@dataclass
class CallLog:
    """The calls of plug-ins, in order."""

    calls: list[tuple[str, str, str]] = field(default_factory=list)
    views: list[StackView] = field(default_factory=list)

    def ends(self) -> list[tuple[str, str]]:
        return [(who, event) for who, what, event in self.calls if what == "after"]


class RecordingPlugin(LifecyclePlugin):
    def __init__(self, call_log: CallLog, name: str, ordinal: int) -> None:
        self.book, self.name, self.ordinal = call_log, name, ordinal
        self.refuses = ""

    async def before(self, view: StackView) -> None:
        await asyncio.sleep(0)
        self.book.views.append(view)
        self.book.calls.append((self.name, "before", view.action))
        if self.refuses:
            raise Refused(self.refuses)

    def after(self, view: StackView, ended: Ended) -> None:
        text = f"{ended.state}{'' if ended.accepted else ' before it began'}"
        self.book.calls.append((self.name, "after", text))


@pytest.fixture
def call_log() -> CallLog:
    return CallLog()


@pytest.fixture
def plugins(call_log: CallLog) -> list[RecordingPlugin]:
    return [RecordingPlugin(call_log, "second", 200), RecordingPlugin(call_log, "first", 100)]


@pytest.fixture
async def run(
    database_url: str, world: World, plugins: list[RecordingPlugin]
) -> AsyncIterator[Program]:
    quick = {"engine.poll": "1s"}
    async with program(database_url, quick, types=[Thing(world)], plugins=plugins) as run:
        yield run


async def until_ended(call_log: CallLog, count: int) -> None:
    async def check() -> bool:
        return len(call_log.ends()) >= count

    await eventually(check)


async def test_plugins_run_in_order_before_and_in_reverse_after_the_action(
    run: Program, call_log: CallLog
) -> None:
    await run.create("s", {"a": thing(7)})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await until_ended(call_log, 2)
    assert call_log.calls == [
        ("first", "before", "CREATE"), ("second", "before", "CREATE"),
        ("second", "after", "complete"), ("first", "after", "complete"),
    ]  # fmt: skip
    view = call_log.views[0]
    assert (view.stack_name, view.action, view.project) == ("s", "CREATE", "p")
    assert [(one.name, one.type, one.change) for one in view.plan] == [
        ("a", "Test::Thing", "added")
    ]
    assert view.plan[0].properties["size"] == 7


async def test_a_plugin_that_refuses_fails_the_action_without_an_operation(
    run: Program, call_log: CallLog, world: World, plugins: list[RecordingPlugin]
) -> None:
    plugins[0].refuses = "no servers today"
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.stack("s"))["stack_status_reason"]
    assert reason == "RecordingPlugin refused it: no servers today" and world.done == []
    assert call_log.ends() == [("first", "failed before it began")]
    plugins[0].refuses = ""
    await put(run, "s", {"a": thing()})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await until_ended(call_log, 3)
    assert call_log.ends()[1:] == [("second", "complete"), ("first", "complete")]


async def test_plugins_run_after_failed_superseded_and_delete_actions(
    run: Program, call_log: CallLog, world: World
) -> None:
    world.script("create", "a", Failed("broken"))
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_FAILED"
    await until_ended(call_log, 2)
    hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await put(run, "s", {"a": thing(2)}, environment=hooks)
    await run.waiting_hooks("s")
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    await until_ended(call_log, 6)
    assert [event for who, event in call_log.ends() if who == "first"] == [
        "failed", "superseded", "complete",
    ]  # fmt: skip
    actions = [event for who, what, event in call_log.calls if who == "first" and what == "before"]
    assert actions == ["CREATE", "UPDATE", "DELETE"]


async def test_plugins_get_the_plan_of_each_action(run: Program, call_log: CallLog) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    for number, action in enumerate(("check", "suspend", "resume"), start=2):
        await run.act("s", action)
        await until_ended(call_log, 2 * number)
    assert [view.action for view in call_log.views[::2]] == ["CREATE", "CHECK", "SUSPEND", "RESUME"]
    assert [one.change for one in call_log.views[-1].plan] == ["resume"]
