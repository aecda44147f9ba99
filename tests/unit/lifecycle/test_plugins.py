"""Lifecycle plug-ins: asked in order, told in reverse, and bounded; what they are shown is kept."""

import asyncio
from collections.abc import Awaitable
from dataclasses import asdict
from importlib.metadata import EntryPoint
from uuid import UUID

import orjson
import pytest

from engine.errors import Unavailable
from engine.lifecycle import plugins
from engine.lifecycle.contract import (
    VERSION,
    Ended,
    LifecyclePlugin,
    PlannedChange,
    Refused,
    StackView,
)
from engine.lifecycle.plugins import ENTRY_POINTS, Plugins, installed
from engine.lifecycle.view import view_document, view_of

VIEW = StackView("prod", UUID(int=5), "shop", "UPDATE", 3, 2, "ann")
DONE = Ended("complete", "")


class Said(LifecyclePlugin):
    """Writes down what it is asked and told; refuses, breaks or hangs where it is to."""

    def __init__(
        self, log: list[str], name: str, ordinal: int = 100,
        before: Exception | None = None, after: Exception | None = None, hangs: str = "",
    ) -> None:  # fmt: skip
        self.ordinal = ordinal
        self._log, self._name, self._before, self._after = log, name, before, after
        self._hangs = hangs

    async def before(self, view: StackView) -> None:
        self._log.append(f"before {self._name}")
        await self._maybe_hang("before")
        if self._before:
            raise self._before

    async def after(self, view: StackView, ended: Ended) -> None:
        began = "" if ended.began else " unbegun"
        self._log.append(f"after {self._name} {ended.state}{began}")
        await self._maybe_hang("after")
        if self._after:
            raise self._after

    async def _maybe_hang(self, where: str) -> None:
        if self._hangs == where:
            await asyncio.Event().wait()


class Plain(LifecyclePlugin):
    """Without a coroutine."""

    def __init__(self, log: list[str], refuses: bool = False) -> None:
        self._log, self._refuses = log, refuses

    def before(self, view: StackView) -> Awaitable[None] | None:
        self._log.append(f"asked of {view.action}")
        if self._refuses:
            raise Refused("not on a Friday")
        return None

    def after(self, view: StackView, ended: Ended) -> Awaitable[None] | None:
        self._log.append(f"told of {ended.state}")
        return None


class Silent(LifecyclePlugin):
    """Leaves both methods out."""


async def test_they_are_asked_in_ascending_order_and_told_in_descending() -> None:
    log: list[str] = []
    plugins = Plugins([Said(log, "c", 300), Said(log, "a", -1), Said(log, "b")])
    assert await plugins.before(VIEW) is None
    await plugins.after(VIEW, DONE)
    assert log == [
        "before a", "before b", "before c", "after c complete", "after b complete",
        "after a complete",
    ]  # fmt: skip


async def test_of_one_ordinal_the_name_of_the_class_decides() -> None:
    log: list[str] = []
    assert await Plugins([Said(log, "s"), Plain(log), Silent()]).before(VIEW) is None
    assert log == ["asked of UPDATE", "before s"]


async def test_none_installed_lets_everything_pass() -> None:
    assert not Plugins()
    assert await Plugins().before(VIEW) is None
    assert Plugins([Silent()])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Refused("too big"), "Said refused it: too big"),
        (ValueError("secret"), "Said failed with ValueError, which refuses it"),
        (KeyError(), "Said failed with KeyError, which refuses it"),
    ],
)
async def test_who_refuses_or_breaks_ends_the_asking_and_those_before_are_told(
    error: Exception, told: str
) -> None:
    log: list[str] = []
    plugins = Plugins([
        Said(log, "a", 1), Said(log, "b", 2), Said(log, "c", 3, before=error), Said(log, "d", 4),
    ])  # fmt: skip
    assert await plugins.before(VIEW) == told
    assert log == [
        "before a", "before b", "before c", "after b failed unbegun", "after a failed unbegun",
    ]  # fmt: skip


async def test_one_without_a_coroutine_is_asked_and_told_as_well() -> None:
    log: list[str] = []
    assert await Plugins([Plain(log, refuses=True)]).before(VIEW) == (
        "Plain refused it: not on a Friday"
    )
    await Plugins([Plain(log)]).after(VIEW, Ended("stopped", "Stopped: by ann"))
    assert log == ["asked of UPDATE", "told of stopped"]


async def test_one_that_does_not_answer_in_time_refuses() -> None:
    log: list[str] = []
    hanging = Said(log, "b", 2, hangs="before")
    said = await Plugins([Said(log, "a", 1), hanging], longest=0.01).before(VIEW)
    assert said == "Said did not answer within 0.01 s, which refuses it"
    assert log == ["before a", "before b", "after a failed unbegun"]


@pytest.mark.parametrize("wrong", ["error", "refused", "hangs"])
async def test_one_that_breaks_when_told_keeps_none_from_being_told(wrong: str) -> None:
    log: list[str] = []
    error = {"error": OSError("gone"), "refused": Refused("late")}.get(wrong)
    odd = Said(log, "b", 2, after=error, hangs="after" if wrong == "hangs" else "")
    plugins = Plugins([Said(log, "a", 1), odd, Said(log, "c", 3)], longest=0.01)
    await plugins.after(VIEW, Ended("superseded", ""))
    assert log == ["after c superseded", "after b superseded", "after a superseded"]


async def test_one_that_breaks_when_told_of_a_refusal_does_not_change_it() -> None:
    log: list[str] = []
    odd = Said(log, "b", 2, after=OSError("gone"))
    plugins = Plugins([Said(log, "a", 1), odd, Said(log, "c", 3, before=Refused("no"))])
    assert await plugins.before(VIEW) == "Said refused it: no"
    assert log[-2:] == ["after b failed unbegun", "after a failed unbegun"]


async def test_whoever_ends_the_asking_from_outside_is_heeded() -> None:
    asking = asyncio.create_task(Plugins([Said([], "a", hangs="before")]).before(VIEW))
    await asyncio.wait([asking], timeout=0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize("state", ["complete", "failed", "stopped", "superseded"])
def test_only_what_is_complete_has_not_failed(state: str) -> None:
    assert Ended(state, "").failed is (state != "complete")


WHOLE = StackView(
    "prod", UUID(int=5), "shop", "UPDATE", 3, 2, "ann", {"tier": "prod", "secret": "***"},
    ("a", "b"),
    (
        PlannedChange("db", "T", "updated", "p-1", {"size": 2}, {"size": {"from": 1}}, ("net",),
                      certain=False),
        PlannedChange("web", "T", "added"),
    ),
    ("db", "web"),
)  # fmt: skip


@pytest.mark.parametrize("view", [VIEW, WHOLE])
def test_a_view_is_the_same_after_it_was_kept(view: StackView) -> None:
    document = orjson.loads(orjson.dumps(view_document(view)))
    assert document["version_of_view"] == VERSION
    assert view_of(document) == view


def test_what_a_later_version_adds_is_passed_over() -> None:
    document = orjson.loads(orjson.dumps(view_document(WHOLE)))
    document |= {"version_of_view": VERSION + 1, "weather": "fine"}
    for one in document["plan"]:
        one["cost"] = 5
    assert view_of(document) == WHOLE


def test_what_an_earlier_version_did_not_say_is_as_usual() -> None:
    document = view_document(VIEW)
    for name in ("parameters", "tags", "plan", "only", "version_of_view"):
        del document[name]
    assert view_of(document) == VIEW
    document["plan"] = [{"name": "db", "type": "T", "change": "added"}]
    assert view_of(document).plan == (PlannedChange("db", "T", "added"),)


def test_a_document_says_everything_of_a_view() -> None:
    document = view_document(WHOLE)
    assert document.keys() - {"version_of_view"} == asdict(WHOLE).keys()
    assert document["plan"] == [asdict(one) for one in WHOLE.plan]


@pytest.mark.parametrize("value", ["no.such.module:Type", "builtins:dict", "builtins:nothing"])
def test_a_plug_in_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("one", value, ENTRY_POINTS)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    with pytest.raises(Unavailable, match=f"the lifecycle plug-in one .{value}"):
        installed()
