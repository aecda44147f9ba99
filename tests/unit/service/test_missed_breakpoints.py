"""The reason why a breakpoint comes too late for a node."""

from dataclasses import replace
from uuid import UUID

import pytest

from engine.hooks.rule import Rule
from engine.service.hooks.breakpoints import missed_reason
from engine.store.hooks.breakpoints import BreakpointNode

WAITS_AT_PRE_CREATE = BreakpointNode(
    UUID(int=1), 1, 1, "app", "T", "create", "forward", "parked", "pre", [],
    ["pre-create"], started=False, ended=False, template_rules=[],
)  # fmt: skip
PASSED = "it has already passed this point"


@pytest.mark.parametrize(
    ("changes", "point", "reason"),
    [
        ({}, "pre-create", "it waits there now"),
        ({}, "post-create", None),
        ({"state": "ready"}, "pre-create", PASSED),
        ({"phase": "execute", "started": True}, "pre-create", PASSED),
        ({"phase": "post", "started": True, "breakpoints_hit": ["pre-create", "post-create"]},
         "pre-create", PASSED),
        ({"phase": "post", "started": True, "breakpoints_hit": ["pre-create", "post-create"]},
         "post-create", "it waits there now"),
        ({"state": "ready", "breakpoints_hit": []}, "pre-create", None),
        ({"state": "running", "breakpoints_hit": []}, "pre-create", None),
        ({"state": "running", "breakpoints_hit": [], "phase": "execute", "started": True},
         "pre-create", "its operation has begun"),
        ({"state": "running", "breakpoints_hit": []}, "post-create", None),
        ({"state": "done", "phase": "post", "started": True, "ended": True}, "pre-create", PASSED),
    ],
    ids=["waits", "ahead", "continued", "parked-in-its-operation", "waits-later", "waits-at-post",
         "ready", "claimed", "begun", "claimed-before-a-later-point", "done"],
)  # fmt: skip
def test_a_node_waits_at_a_point_while_its_hook_is_open(
    changes: dict[str, object], point: str, reason: str | None
) -> None:
    node = replace(WAITS_AT_PRE_CREATE, **changes)  # type: ignore[arg-type]
    assert missed_reason(node, Rule(point)) == reason
