"""Lifecycle plug-ins: ascending order before, descending order after, time limits, and the stored
view.
"""

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
from engine.lifecycle.gate import view_document, view_of
from engine.lifecycle.plugins import ENTRY_POINTS, Plugins, load_installed

VIEW = StackView("prod", UUID(int=5), "shop", "UPDATE", 3, 2, "ann")
DONE = Ended("complete", "")
FAILED = "RecordingPlugin failed, which refuses the action; see the server's log"


class RecordingPlugin(LifecyclePlugin):
    """Logs its calls; refuses, raises or hangs if configured."""

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
        accepted = "" if ended.accepted else " unbegun"
        self._log.append(f"after {self._name} {ended.state}{accepted}")
        await self._maybe_hang("after")
        if self._after:
            raise self._after

    async def _maybe_hang(self, where: str) -> None:
        if self._hangs == where:
            await asyncio.Event().wait()


class PlainPlugin(LifecyclePlugin):
    """Without coroutines."""

    def __init__(self, log: list[str], refuses: bool = False) -> None:
        self._log, self._refuses = log, refuses

    def before(self, view: StackView) -> Awaitable[None] | None:
        self._log.append(f"before {view.action}")
        if self._refuses:
            raise Refused("not on a Friday")
        return None

    def after(self, view: StackView, ended: Ended) -> Awaitable[None] | None:
        self._log.append(f"after {ended.state}")
        return None


class EmptyPlugin(LifecyclePlugin):
    """Defines neither method."""


async def test_before_runs_in_ascending_order_and_after_in_descending_order() -> None:
    log: list[str] = []
    plugins = Plugins(
        [RecordingPlugin(log, "c", 300), RecordingPlugin(log, "a", -1), RecordingPlugin(log, "b")]
    )
    assert await plugins.before(VIEW) is None
    await plugins.after(VIEW, DONE)
    assert log == [
        "before a", "before b", "before c", "after c complete", "after b complete",
        "after a complete",
    ]  # fmt: skip


async def test_equal_ordinals_are_ordered_by_class_name() -> None:
    log: list[str] = []
    assert (
        await Plugins([RecordingPlugin(log, "s"), PlainPlugin(log), EmptyPlugin()]).before(VIEW)
        is None
    )
    assert log == ["before UPDATE", "before s"]


async def test_without_plugins_every_action_is_allowed() -> None:
    assert not Plugins()
    assert await Plugins().before(VIEW) is None
    assert Plugins([EmptyPlugin()])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Refused("too big"), "RecordingPlugin refused it: too big"),
        (
            ValueError("secret"),
            FAILED,
        ),
        (KeyError(), FAILED),
    ],
)
async def test_after_a_refusal_or_error_the_earlier_plugins_get_after(
    error: Exception, message: str
) -> None:
    log: list[str] = []
    plugins = Plugins([
        RecordingPlugin(log, "a", 1), RecordingPlugin(log, "b", 2),
        RecordingPlugin(log, "c", 3, before=error), RecordingPlugin(log, "d", 4),
    ])  # fmt: skip
    assert await plugins.before(VIEW) == message
    assert log == [
        "before a", "before b", "before c", "after b failed unbegun", "after a failed unbegun",
    ]  # fmt: skip


async def test_a_synchronous_plugin_is_supported() -> None:
    log: list[str] = []
    assert await Plugins([PlainPlugin(log, refuses=True)]).before(VIEW) == (
        "PlainPlugin refused it: not on a Friday"
    )
    await Plugins([PlainPlugin(log)]).after(VIEW, Ended("stopped", "Stopped: by ann"))
    assert log == ["before UPDATE", "after stopped"]


async def test_a_timeout_refuses_the_action() -> None:
    log: list[str] = []
    hanging = RecordingPlugin(log, "b", 2, hangs="before")
    errors = await Plugins([RecordingPlugin(log, "a", 1), hanging], max_seconds=0.01).before(VIEW)
    assert errors == "RecordingPlugin did not answer within 0.01 s, which refuses the action"
    assert log == ["before a", "before b", "after a failed unbegun"]


@pytest.mark.parametrize("wrong", ["error", "refused", "hangs"])
async def test_an_error_in_after_does_not_stop_other_plugins(wrong: str) -> None:
    log: list[str] = []
    error = {"error": OSError("gone"), "refused": Refused("late")}.get(wrong)
    failing = RecordingPlugin(log, "b", 2, after=error, hangs="after" if wrong == "hangs" else "")
    plugins = Plugins(
        [RecordingPlugin(log, "a", 1), failing, RecordingPlugin(log, "c", 3)], max_seconds=0.01
    )
    await plugins.after(VIEW, Ended("superseded", ""))
    assert log == ["after c superseded", "after b superseded", "after a superseded"]


async def test_an_error_in_after_does_not_change_the_refusal() -> None:
    log: list[str] = []
    failing = RecordingPlugin(log, "b", 2, after=OSError("gone"))
    plugins = Plugins(
        [
            RecordingPlugin(log, "a", 1),
            failing,
            RecordingPlugin(log, "c", 3, before=Refused("no")),
        ]
    )
    assert await plugins.before(VIEW) == "RecordingPlugin refused it: no"
    assert log[-2:] == ["after b failed unbegun", "after a failed unbegun"]


async def test_before_can_be_cancelled() -> None:
    task = asyncio.create_task(Plugins([RecordingPlugin([], "a", hangs="before")]).before(VIEW))
    await asyncio.wait([task], timeout=0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("state", ["complete", "failed", "stopped", "superseded"])
def test_every_end_except_complete_is_a_failure(state: str) -> None:
    assert Ended(state, "").failed is (state != "complete")


FULL_VIEW = StackView(
    "prod", UUID(int=5), "shop", "UPDATE", 3, 2, "ann", {"tier": "prod", "secret": "***"},
    ("a", "b"),
    (
        PlannedChange("db", "T", "updated", "p-1", {"size": 2}, {"size": {"from": 1}}, ("net",),
                      certain=False),
        PlannedChange("web", "T", "added"),
    ),
    ("db", "web"),
)  # fmt: skip


@pytest.mark.parametrize("view", [VIEW, FULL_VIEW])
def test_a_view_is_restored_from_its_stored_form(view: StackView) -> None:
    document = orjson.loads(orjson.dumps(view_document(view)))
    assert document["version_of_view"] == VERSION
    assert view_of(document) == view


def test_unknown_keys_of_a_stored_view_are_ignored() -> None:
    document = orjson.loads(orjson.dumps(view_document(FULL_VIEW)))
    document |= {"version_of_view": VERSION + 1, "weather": "fine"}
    for one in document["plan"]:
        one["cost"] = 5
    assert view_of(document) == FULL_VIEW


def test_missing_keys_of_a_stored_view_have_defaults() -> None:
    document = view_document(VIEW)
    for name in ("parameters", "tags", "plan", "only", "version_of_view"):
        del document[name]
    assert view_of(document) == VIEW
    document["plan"] = [{"name": "db", "type": "T", "change": "added"}]
    assert view_of(document).plan == (PlannedChange("db", "T", "added"),)


def test_the_stored_form_has_all_fields_of_a_view() -> None:
    document = view_document(FULL_VIEW)
    assert document.keys() - {"version_of_view"} == asdict(FULL_VIEW).keys()
    assert document["plan"] == [asdict(one) for one in FULL_VIEW.plan]


@pytest.mark.parametrize("value", ["no.such.module:Type", "builtins:dict", "builtins:nothing"])
def test_a_plugin_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("one", value, ENTRY_POINTS)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    with pytest.raises(Unavailable, match=f"the lifecycle plug-in one .{value}"):
        load_installed()
