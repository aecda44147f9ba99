"""The database and the model, side by side."""

from typing import Any
from uuid import UUID

from engine.store.encryption import Scope, reveal
from tests.model.replay import PROJECT, Diverged, Replay
from tests.model.store import is_working
from tests.model.world import Node, World

STACK = "select traversal, deleted_at is not null as buried from stack where id = $1"
TRAVERSALS = """
select number, action, state, active, wake_at is not null as wake,
       working_since is not null as working
  from traversal
 where stack_id = $1
"""
NODES = """
select traversal, id, state, phase, operation, passed, waits, claim, wake_at is not null as wake,
       resource_id, attempts, successor, operation_key
  from node where stack_id = $1
"""
ROWS = """
select id, name, action, status, digest, properties as value,
       physical_id is not null as made, broken, requires, replaced_by,
       deletion_policy, jsonb_path_query_array(rules, '$[*].point') as points
  from resource where stack_id = $1
"""
HOOKS = """
select traversal, node, point, case when state in ('waiting', 'superseded') then state
       else decision end as said
  from hook where stack_id = $1
"""

Facts = dict[Any, Any]


async def check_equal(replay: Replay, world: World) -> None:
    """Raises Diverged with what differs."""
    real = await real_facts(replay, world)
    learn_keys(replay, world, real)
    model = model_facts(replay, world)
    differing = [
        f"{key}: the database has {real.get(key)}, the model {model.get(key)}"
        for key in sorted(real.keys() | model.keys(), key=repr)
        if real.get(key) != model.get(key)
    ]
    if differing:
        raise Diverged("\n".join(differing))


async def real_facts(replay: Replay, world: World) -> Facts:
    async with replay.database.connection() as conn:
        stack = await conn.fetchrow(STACK, replay.stack)
        traversals = await conn.fetch(TRAVERSALS, replay.stack)
        nodes = await conn.fetch(NODES, replay.stack)
        rows = await conn.fetch(ROWS, replay.stack)
        hooks = await conn.fetch(HOOKS, replay.stack)
    there = {(row["traversal"], row["id"]) for row in nodes}
    return {
        "stack": tuple(stack) if stack else None,
        **{("traversal", row["number"]): tuple(row)[1:] for row in traversals},
        **{("node", row["traversal"], row["id"]): _listed(tuple(row)[2:]) for row in nodes},
        **{("row", row["id"]): _row(replay, row) for row in rows},
        **{
            ("hook", row["traversal"], row["node"], row["point"]): row["said"]
            for row in hooks
            if row["said"] == "waiting" or (row["traversal"], row["node"]) in there
        },
    }


def _listed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def _row(replay: Replay, row: Any) -> tuple[Any, ...]:
    fields = {**dict(row), "digest": replay.digests[row["digest"]]}
    properties = reveal(row["value"], Scope(PROJECT, replay.stack, "resource.properties"))
    fields["value"] = (properties or {}).get("value")
    fields["requires"] = frozenset(row["requires"])
    fields["points"] = tuple(row["points"] or ())
    del fields["id"]
    return tuple(fields.values())


def learn_keys(replay: Replay, world: World, real: Facts) -> None:
    """The first time an operation has a key, it may be any; from then on it is that one."""
    for number, traversal in enumerate(world.traversals, 1):
        for at, node in enumerate(traversal.nodes):
            if node is not None and node.key is not None:
                found = real.get(("node", number, replay.nodes[number, at]))
                if found and found[-1]:
                    learn_key(replay, (number, at, node.key), found[-1])


def learn_key(replay: Replay, of_model: tuple[int, int, int], real: UUID) -> None:
    if (
        replay.keys.setdefault(of_model, real) == real
        and replay.keyed.setdefault(real, of_model) != of_model
    ):
        raise Diverged(f"the operations {of_model} and {replay.keyed[real]} have one key")


def _key(replay: Replay, number: int, at: int, node: Node) -> UUID | None:
    return None if node.key is None else replay.keys.get((number, at, node.key))


def model_facts(replay: Replay, world: World) -> Facts:
    facts: Facts = {"stack": (world.current, world.buried)}
    for number, traversal in enumerate(world.traversals, 1):
        facts["traversal", number] = (
            traversal.action.value, traversal.state, traversal.active, traversal.wake,
            is_working(traversal),
        )  # fmt: skip
        for at, node in enumerate(traversal.nodes):
            if node is None:
                continue
            successor = node.successor
            if successor is not None:
                successor = replay.nodes[world.current, successor]
            facts["node", number, replay.nodes[number, at]] = (
                node.state.value, node.phase.value, node.operation.value,
                tuple(map(str, node.passed)), node.waits, node.claim, node.wake,
                replay.rows[node.resource], node.attempts, successor,
                _key(replay, number, at, node),
            )  # fmt: skip
    for row in world.rows:
        by = None if row.replaced_by is None else replay.rows[row.replaced_by]
        facts["row", replay.rows[row.id]] = (
            row.name, row.action, row.status, row.digest, row.value, row.made, row.broken,
            frozenset(replay.rows[one] for one in row.requires), by, row.policy,
            tuple(str(rule.point) for rule in row.rules),
        )  # fmt: skip
    for hook in world.hooks:
        if hook.said == "waiting" or world.node(hook.traversal, hook.node) is not None:
            node_id = replay.nodes[hook.traversal, hook.node]
            facts["hook", hook.traversal, node_id, str(hook.point)] = hook.said
    return facts
