"""Version 1 of the interfaces of plug-ins and resource types, which must stay compatible.

A field may be added if it has a default; none may be removed or renamed.
"""

from collections.abc import Iterator
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from inspect import Parameter, signature
from uuid import UUID

import pytest

from channels import contract as channel
from channels.contract import Channel
from engine.hot.schema.type_schema import TypeSchema
from engine.lifecycle import contract as lifecycle
from engine.lifecycle.contract import Ended, LifecyclePlugin, Refused, StackView
from engine.lifecycle.plugins import Plugins
from engine.types import contract as types
from engine.types import placement
from engine.types.contract import Call, Confirmation, Done, ResourceType
from engine.types.placement import Placement
from engine.words import ResourceId, StackId

#: By interface and class, the fields of version 1 in their order.
FIELDS: dict[tuple[object, str], str] = {
    (lifecycle, "StackView"): "project stack_id stack_name action traversal version requested_by"
    " parameters tags plan",
    (lifecycle, "PlannedChange"): "name type change physical_id properties changes unknown certain",
    (lifecycle, "Ended"): "state reason accepted",
    (types, "Call"): "project stack_id stack_name resource_id resource_name operation_key now"
    " properties previous changed physical_id data attributes progress attempts kept confirmation"
    " answers credential signals",
    (types, "Confirmation"): "step accepted by reason",
    (types, "Done"): "physical_id attributes data reason",
    (types, "Wait"): "until progress",
    (types, "Confirm"): "step progress seen",
    (types, "Replace"): "",
    (types, "Failed"): "reason physical_id data retry",
    (
        placement,
        "GroupView",
    ): "project stack_id stack_name resource_name type properties members new",
    (placement, "PlacedMember"): "name status placed",
    (channel, "EventMessage"): "id type document sent_at waiting",
    (channel, "Endpoint"): "subscription_id target secrets",
    (channel, "ReceiverDecision"): "decision reason more",
    (channel, "Delivered"): "code response decision note",
    (channel, "Failed"): "reason code response retry_after final",
}
#: Methods of version 1, with their parameters.
METHODS: dict[type, dict[str, str]] = {
    LifecyclePlugin: {"before": "view", "after": "view ended"},
    ResourceType: dict.fromkeys(
        ("create", "update", "delete", "check", "adopt", "suspend", "resume", "snapshot",
         "needs_replace"), "call",
    ) | {"reference": "resource_name physical_id data",
         "check_properties": "properties place findings"},
    Placement: {"place": "view"},
    Channel: {"check_target": "target", "deliver": "message endpoint"},
}  # fmt: skip


def classes() -> Iterator[object]:
    for (module, name), listed in FIELDS.items():
        yield pytest.param(getattr(module, name), listed.split(), id=f"{module.__name__}.{name}")  # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "kept"), list(classes()))
def test_fields_keep_their_positions(kind: type, kept: list[str]) -> None:
    now = fields(kind)
    assert [one.name for one in now][: len(kept)] == kept
    for added in now[len(kept) :]:
        usual = (added.default, added.default_factory)
        assert usual != (MISSING, MISSING), f"{added.name} is new, and must have a default"


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.__name__)
def test_methods_keep_their_parameters(kind: type) -> None:
    for name, arguments in METHODS[kind].items():
        now = [one for one in signature(getattr(kind, name)).parameters.values()][1:]
        positional = [one.name for one in now if one.kind is not Parameter.KEYWORD_ONLY]
        assert positional[: len(arguments.split())] == arguments.split(), name
        assert all(one.default is not Parameter.empty for one in now[len(arguments.split()) :])


def test_the_interface_version_is_the_tested_one() -> None:
    assert (lifecycle.VERSION, placement.VERSION) == (1, 1)


class Quiet(LifecyclePlugin):
    """As in the reference."""

    ordinal = 50

    def __init__(self) -> None:
        self.notifications: list[tuple[str, str, bool]] = []

    async def before(self, view: StackView) -> None:
        if view.action == "DELETE" and "keep" in view.tags:
            raise Refused("it is tagged keep")

    def after(self, view: StackView, ended: Ended) -> None:
        self.notifications.append((view.stack_name, ended.state, ended.failed))


async def test_a_plug_in_of_version_1_works() -> None:
    quiet = Quiet()
    plugins = Plugins([quiet])
    view = StackView("p", UUID(int=1), "web", "DELETE", 2, 1, "ann", {}, ("keep",))
    assert await plugins.before(view) == "Quiet refused it: it is tagged keep"
    await plugins.after(view, Ended("complete", ""))
    assert quiet.notifications == [("web", "complete", False)]


class MinimalType(ResourceType):
    """A type of version 1 with the minimum of methods."""

    schema = TypeSchema("Acme::Lamp")

    def create(self, call: Call) -> Done:
        return Done(f"lamp-{call.resource_name}", {"lit": True})

    def delete(self, call: Call) -> Done:
        return Done(None)


def test_a_type_of_version_1_works() -> None:
    call = Call(
        "p", StackId(UUID(int=1)), "web", ResourceId(UUID(int=2)), "a", UUID(int=3),
        datetime(2026, 1, 1, tzinfo=UTC), {},
    )  # fmt: skip
    lamp = MinimalType()
    assert lamp.create(call) == Done("lamp-a", {"lit": True})
    assert isinstance(lamp.update(call), types.Replace)
    for operation in (lamp.check, lamp.adopt, lamp.suspend, lamp.resume, lamp.snapshot):
        assert isinstance(operation(call), Done)
    assert not lamp.needs_replace(call)
    assert Confirmation("resize", True, "ann").reason == ""
