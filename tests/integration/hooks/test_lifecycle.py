"""Plug-ins and policy programs around every action of every stack."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from engine.lifecycle.contract import Ended, LifecyclePlugin, Refused, StackView
from engine.types.contract import Failed
from tests.support.changes import gone, put, thing
from tests.support.program import Program, eventually, program
from tests.support.things import Thing, World


@dataclass
class Book:
    """What plug-ins saw, in order."""

    seen: list[tuple[str, str, str]] = field(default_factory=list)
    views: list[StackView] = field(default_factory=list)

    def ends(self) -> list[tuple[str, str]]:
        return [(who, said) for who, what, said in self.seen if what == "after"]


class Watcher(LifecyclePlugin):
    def __init__(self, book: Book, name: str, ordinal: int) -> None:
        self.book, self.name, self.ordinal = book, name, ordinal
        self.refuses = ""

    async def before(self, view: StackView) -> None:
        await asyncio.sleep(0)
        self.book.views.append(view)
        self.book.seen.append((self.name, "before", view.action))
        if self.refuses:
            raise Refused(self.refuses)

    def after(self, view: StackView, ended: Ended) -> None:
        said = f"{ended.state}{'' if ended.began else ' before it began'}"
        self.book.seen.append((self.name, "after", said))


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def watchers(book: Book) -> list[Watcher]:
    return [Watcher(book, "second", 200), Watcher(book, "first", 100)]


@pytest.fixture
async def run(database_url: str, world: World, watchers: list[Watcher]) -> AsyncIterator[Program]:
    quick = {"engine.poll": "1s"}
    async with program(database_url, quick, types=[Thing(world)], plugins=watchers) as made:
        yield made


async def told(book: Book, count: int) -> None:
    async def look() -> bool:
        return len(book.ends()) >= count

    await eventually(look)


async def test_they_are_asked_in_order_and_told_in_reverse(run: Program, book: Book) -> None:
    await run.create("s", {"a": thing(7)})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await told(book, 2)
    assert book.seen == [
        ("first", "before", "CREATE"), ("second", "before", "CREATE"),
        ("second", "after", "complete"), ("first", "after", "complete"),
    ]  # fmt: skip
    view = book.views[0]
    assert (view.stack_name, view.action, view.project) == ("s", "CREATE", "p")
    assert [(one.name, one.type, one.change) for one in view.plan] == [
        ("a", "Test::Thing", "added")
    ]
    assert view.plan[0].properties["size"] == 7


async def test_one_that_refuses_keeps_everything_as_it_was(
    run: Program, book: Book, world: World, watchers: list[Watcher]
) -> None:
    watchers[0].refuses = "no servers today"
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.stack("s"))["stack_status_reason"]
    assert reason == "Watcher refused it: no servers today" and world.done == []
    assert book.ends() == [("first", "failed before it began")]
    watchers[0].refuses = ""
    await put(run, "s", {"a": thing()})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await told(book, 3)
    assert book.ends()[1:] == [("second", "complete"), ("first", "complete")]


async def test_they_are_told_of_failure_of_what_superseded_and_of_a_delete(
    run: Program, book: Book, world: World
) -> None:
    world.will("create", "a", Failed("broken"))
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_FAILED"
    await told(book, 2)
    held = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await put(run, "s", {"a": thing(2)}, environment=held)
    await run.waiting("s")
    await run.at("DELETE", "s")
    await gone(run, "s")
    await told(book, 6)
    assert [said for who, said in book.ends() if who == "first"] == [
        "failed", "superseded", "complete",
    ]  # fmt: skip
    actions = [said for who, what, said in book.seen if who == "first" and what == "before"]
    assert actions == ["CREATE", "UPDATE", "DELETE"]


async def test_each_action_is_shown_to_them(run: Program, book: Book) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    for number, action in enumerate(("check", "suspend", "resume"), start=2):
        await run.act("s", action)
        await told(book, 2 * number)
    assert [view.action for view in book.views[::2]] == ["CREATE", "CHECK", "SUSPEND", "RESUME"]
    assert [one.change for one in book.views[-1].plan] == ["resume"]
