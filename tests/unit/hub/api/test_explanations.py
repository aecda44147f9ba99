"""Sentences of `why`."""

from uuid import UUID

from engine.store.records import NodeRecord
from hub.api.headgate.explanations import _blocker


def node(id: int, direction: str, name: str = "app") -> NodeRecord:
    operation = "create" if direction == "forward" else "delete"
    return NodeRecord(
        UUID(int=1), id, name, "T", operation, direction, "waiting", "pre", 0, [], [],
        None, None, None, None,
    )  # fmt: skip


def test_a_node_never_waits_for_itself() -> None:
    new, old = node(1, "forward"), node(2, "cleanup")
    assert _blocker(old, new) == "its replacement"
    assert _blocker(new, old) == "the deletion of its old resource"
    assert _blocker(new, node(3, "forward", "db")) == "db"
