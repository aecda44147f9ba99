"""Placement plug-ins place new members of a group."""

import asyncio
from collections.abc import Awaitable
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from engine.errors import Conflict, Unavailable
from engine.types import placement
from engine.types.contract import Done, Failed
from engine.types.groups.auto_scaling import AutoScalingGroup
from engine.types.groups.resource_group import ResourceGroup
from engine.types.placement import (
    ENTRY_POINTS,
    GroupView,
    PlacedMember,
    Placement,
    Placer,
    Places,
    Refused,
    load_installed,
)
from tests.unit.types.calls import STACK
from tests.unit.types.nested_stack import NestedStack

BODY = {"type": "T", "properties": {"value": "v-%index%"}}


class Zones(Placement):
    """As many members in one zone as in the other."""

    def __init__(self) -> None:
        self.views: list[GroupView] = []

    def place(self, view: GroupView) -> Places:
        self.views.append(view)
        used = [one.placed.get("zone") for one in view.members]
        places: dict[str, dict[str, str]] = {}
        for name in view.new:
            zone = min("ab", key=used.count)
            used.append(zone)
            places[name] = {"zone": zone}
        return places


class FixedPlacement(Placement):
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def place(self, view: GroupView) -> Places:
        if isinstance(self.answer, BaseException):
            raise self.answer
        if self.answer == "for ever":
            await asyncio.Event().wait()
        places: Places = self.answer
        return places


def zones_of(inside: NestedStack) -> dict[str, Any]:
    return {name: body["properties"].get("zone") for name, body in inside.bodies.items()}


def test_new_members_are_placed_and_stay_where_they_are() -> None:
    zones = Zones()
    group = ResourceGroup(Placer(zones))
    inside = NestedStack()
    inside.run(group, "create", {"count": 2, "resource_def": BODY})
    assert zones_of(inside) == {"0": "a", "1": "b"}
    assert zones.views == [
        GroupView("p", STACK, "s", "r", "T", {"value": "v-0"}, (), ("0", "1")),
    ]
    changed = {"type": "T", "properties": {"value": "w"}}
    inside.run(group, "update", {"count": 3, "resource_def": changed})
    assert zones_of(inside) == {"0": "a", "1": "b", "2": "a"}
    assert {body["properties"]["value"] for body in inside.bodies.values()} == {"w"}
    members = (PlacedMember("0", "COMPLETE", {"zone": "a"}),
               PlacedMember("1", "COMPLETE", {"zone": "b"}))  # fmt: skip
    assert (zones.views[1].members, zones.views[1].new) == (members, ("2",))
    inside.run(group, "update", {"count": 3, "resource_def": changed})
    assert len(zones.views) == 2


def test_members_of_a_scaling_group_are_placed_as_it_grows() -> None:
    group = AutoScalingGroup(Placer(Zones()))
    inside = NestedStack()
    properties = {"resource": {"type": "T"}, "min_size": 1, "max_size": 9}
    inside.run(group, "create", properties)
    inside.run(group, "update", properties, adjusted={"size": 4})
    assert sorted(zones_of(inside).values()) == ["a", "a", "b", "b"]


def test_the_plug_in_gets_no_secrets() -> None:
    zones = Zones()
    inside = NestedStack()
    group = ResourceGroup(Placer(zones))
    inside.run(group, "create", {"count": 1, "resource_def": BODY}, has_secrets=True)
    assert zones.views[0].properties == {}
    assert zones_of(inside) == {"0": "a"}


def test_a_member_without_an_entry_has_the_properties_of_the_template() -> None:
    inside = NestedStack()
    done = inside.run(
        ResourceGroup(Placer(FixedPlacement({"1": {"zone": "z"}}))), "create",
        {"count": 2, "resource_def": BODY},
    )  # fmt: skip
    assert isinstance(done, Done)
    assert zones_of(inside) == {"0": None, "1": "z"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            Refused("no zone has room"),
            "FixedPlacement refused to place members: no zone has room",
        ),
        (
            ValueError("secret"),
            "FixedPlacement failed, so no members are created; see the server's log",
        ),
        ("for ever", "FixedPlacement did not place the members within 0.01 s"),
        (
            {"7": {}},
            "FixedPlacement did not return a mapping from names of new members to properties",
        ),
        (
            {"0": "a"},
            "FixedPlacement did not return a mapping from names of new members to properties",
        ),
        (None, "FixedPlacement did not return a mapping from names of new members to properties"),
    ],
    ids=["refuses", "fails", "is silent", "names nobody", "no map", "nothing"],
)
def test_members_without_a_placement_are_not_created(answer: Any, reason: str) -> None:
    inside = NestedStack()
    group = ResourceGroup(Placer(FixedPlacement(answer), max_seconds=0.01))
    failed = inside.run(group, "create", {"count": 1, "resource_def": BODY})
    assert isinstance(failed, Failed)
    assert failed.reason == reason
    assert inside.goals == []


def test_a_plug_in_may_be_a_coroutine_function() -> None:
    assert issubclass(FixedPlacement, Placement)
    places = FixedPlacement({}).place(GroupView("p", STACK, "s", "r", "T", {}, (), ()))
    assert isinstance(places, Awaitable)
    places.close()


def install(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    points = [EntryPoint(f"p{n}", value, ENTRY_POINTS) for n, value in enumerate(values)]
    monkeypatch.setattr(placement, "entry_points", lambda group: points)


def test_an_installed_plugin_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert load_installed() is None
    install(monkeypatch, f"{__name__}:Zones")
    assert isinstance(load_installed(), Placer)


@pytest.mark.parametrize("value", ["no.such.module:Type", "builtins:dict", "builtins:nothing"])
def test_a_plugin_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    install(monkeypatch, value)
    with pytest.raises(Unavailable, match=f"p0 .{value}"):
        load_installed()


def test_two_placement_plug_ins_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, f"{__name__}:Zones", f"{__name__}:Zones")
    with pytest.raises(Conflict, match="several placement plug-ins are installed: p0, p1"):
        load_installed()
