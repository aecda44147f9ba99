"""Compares the rows of the database with the state of the model."""

from typing import Any
from uuid import UUID

from engine.store.encryption.secret_values import Scope, decrypt
from tests.model.replay import PROJECT, Divergence, Replay
from tests.model.store import is_working
from tests.model.system_state import Node, SystemState

STACK = "select traversal, deleted_at is not null as deleted from stack where id = $1"
TRAVERSALS = """
select number, action, state, active_nodes, wake_at is not null as wake,
       working_since is not null as working, step_mode
  from traversal
 where stack_id = $1
"""
NODES = """
select traversal, id, state, phase, operation, breakpoints_hit, pending_dependencies, claim,
       wake_at is not null as wake,
       resource_id, attempts, successor, started_at is not null as begun,
       confirmation ->> 'step' as step, (confirmation -> 'accepted')::boolean as accepted,
       cancelled, call_again, operation_key
  from node where stack_id = $1
"""
ROWS = """
select id, name, action, status, digest, properties as value,
       physical_id is not null as has_physical_id, tainted, requires, replaced_by,
       deletion_policy, jsonb_path_query_array(rules, '$[*].point') as points
  from resource where stack_id = $1
"""
SNAPSHOTS = """
select traversal, resource_id from resource_snapshot where stack_id = $1
"""
HOOKS = """
select traversal, node, point, case when state in ('waiting', 'superseded') then state
       when decision like 'step%' or decision = 'run' then 'continue'
       else decision end as state
  from hook where stack_id = $1
"""

Facts = dict[Any, Any]


async def check_equal(replay: Replay, system: SystemState) -> None:
    """Raise Divergence if the database and the model differ."""
    real = await real_facts(replay, system)
    learn_keys(replay, system, real)
    model = model_facts(replay, system)
    differing = [
        f"{key}: the database has {real.get(key)}, the model {model.get(key)}"
        for key in sorted(real.keys() | model.keys(), key=repr)
        if real.get(key) != model.get(key)
    ]
    if differing:
        raise Divergence("\n".join(differing))


async def real_facts(replay: Replay, system: SystemState) -> Facts:
    async with replay.database.connection() as conn:
        stack = await conn.fetchrow(STACK, replay.stack)
        traversals = await conn.fetch(TRAVERSALS, replay.stack)
        nodes = await conn.fetch(NODES, replay.stack)
        rows = await conn.fetch(ROWS, replay.stack)
        hooks = await conn.fetch(HOOKS, replay.stack)
        snapshots = await conn.fetch(SNAPSHOTS, replay.stack)
    node_keys = {(row["traversal"], row["id"]) for row in nodes}
    return {
        "stack": tuple(stack) if stack else None,
        "snapshots": {tuple(row) for row in snapshots},
        **{("traversal", row["number"]): tuple(row)[1:] for row in traversals},
        **{("node", row["traversal"], row["id"]): _listed(tuple(row)[2:]) for row in nodes},
        **{("row", row["id"]): _row(replay, row) for row in rows},
        **{
            ("hook", row["traversal"], row["node"], row["point"]): row["state"]
            for row in hooks
            if row["state"] == "waiting" or (row["traversal"], row["node"]) in node_keys
        },
    }


def _listed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def _row(replay: Replay, row: Any) -> tuple[Any, ...]:
    fields = {**dict(row), "digest": replay.digests[row["digest"]]}
    properties = decrypt(row["value"], Scope(PROJECT, replay.stack, "resource.properties"))
    members = (properties or {}).get("resource_def")  # of a group
    fields["value"] = ((members["properties"] if members else properties) or {}).get("value")
    fields["requires"] = frozenset(row["requires"])
    fields["points"] = tuple(row["points"] or ())
    del fields["id"]
    return tuple(fields.values())


def learn_keys(replay: Replay, system: SystemState, real: Facts) -> None:
    """Map the engine's operation keys to the model's. Raises Divergence if a key has two."""
    for number, traversal in enumerate(system.traversals, 1):
        for at, node in enumerate(traversal.nodes):
            if node is not None and node.key is not None:
                operation_key = real.get(("node", number, replay.nodes[number, at]))
                if operation_key and operation_key[-1]:
                    learn_key(replay, (number, at, node.key), operation_key[-1])


def learn_key(replay: Replay, model_key: tuple[int, int, int], real: UUID) -> None:
    if (
        replay.keys.setdefault(model_key, real) == real
        and replay.model_keys.setdefault(real, model_key) != model_key
    ):
        raise Divergence(f"the operations {model_key} and {replay.model_keys[real]} have one key")


def _key(replay: Replay, number: int, at: int, node: Node) -> UUID | None:
    return None if node.key is None else replay.keys.get((number, at, node.key))


def model_facts(replay: Replay, system: SystemState) -> Facts:
    snapshots = {(number, replay.rows[row]) for number, row, _ in system.snapshots}
    facts: Facts = {"stack": (system.current, system.deleted), "snapshots": snapshots}
    for number, traversal in enumerate(system.traversals, 1):
        facts["traversal", number] = (
            traversal.action.value, traversal.state, traversal.active_nodes, traversal.wake,
            is_working(traversal), traversal.step_mode,
        )  # fmt: skip
        for at, node in enumerate(traversal.nodes):
            if node is None:
                continue
            successor = node.successor
            if successor is not None:
                successor = replay.nodes[system.current, successor]
            facts["node", number, replay.nodes[number, at]] = (
                node.state.value, node.phase.value, node.operation.value,
                tuple(map(str, node.breakpoints_hit)), node.pending_dependencies, node.claim,
                node.wake,
                replay.rows[node.resource], node.attempts, successor, node.begun,
                *(node.confirmation or (None, None)),
                node.cancelled, node.call_again,
                _key(replay, number, at, node),
            )  # fmt: skip
    for row in system.rows:
        by = None if row.replaced_by is None else replay.rows[row.replaced_by]
        facts["row", replay.rows[row.id]] = (
            row.name, row.action, row.status, row.digest, row.value, row.has_physical_id,
            row.tainted, frozenset(replay.rows[one] for one in row.requires), by, row.policy,
            tuple(str(rule.point) for rule in row.rules),
        )  # fmt: skip
    for hook in system.hooks:
        if hook.state == "waiting" or system.node(hook.traversal, hook.node) is not None:
            node_id = replay.nodes[hook.traversal, hook.node]
            facts["hook", hook.traversal, node_id, str(hook.point)] = hook.state
    return facts
