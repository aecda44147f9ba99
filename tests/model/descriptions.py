"""Formats traces and states for failure messages."""

from collections.abc import Sequence

from engine.node.node import Answered, Expired
from tests.model.protocol import Move
from tests.model.system_state import SystemState, Worker


def describe(trace: Sequence[Move], system: SystemState) -> str:
    """The numbered moves and the state they lead to."""
    lines = [f"{at:3}. {describe_move(move, system)}" for at, move in enumerate(trace, 1)]
    return "\n".join([*lines, *describe_state(system)])


def describe_move(move: Move, system: SystemState) -> str:
    where = _node(move, system)
    transition = move.worker.transition if move.worker else None
    match move.kind:
        case "request":
            return "the next request is accepted"
        case "claim":
            return f"a worker claims {where}"
        case "call":
            return f"{_claim(move.worker)} calls the operation of {where}: {_input(move)}"
        case "run":
            return f"{_claim(move.worker)} executes the run of {where}"
        case "commit":
            unacknowledged = ", and the acknowledgement is lost" if move.input else ""
            state = f"{transition.state} in {transition.phase}" if transition else ""
            return f"{_claim(move.worker)} commits {where} as {state}{unacknowledged}"
        case "repeat":
            return f"{_claim(move.worker)} commits {where} again"
        case "hook":
            point = move.hook.point if move.hook else ""
            return (
                f"{point} of {where}: {_input(move)}{'' if move.how == 'over' else ' ' + move.how}"
            )
        case "timeout":
            return f"{where} reaches its time limit"
        case "end":
            return f"a worker ends {where}"
        case _:
            return f"{_claim(move.worker)} of {where} is lost: its worker crashes"


def _node(move: Move, system: SystemState) -> str:
    if move.node < 0 or move.traversal == 0:
        return f"traversal {move.traversal}"
    node_plan = system.traversal(move.traversal).graph.nodes[move.node]
    return f"{move.traversal}/{node_plan.name} ({node_plan.direction}, row {node_plan.resource})"


def _claim(worker: Worker | None) -> str:
    return "no claim" if worker is None else f"claim {worker.claim} ({worker.stage})"


def _input(move: Move) -> str:
    match move.input:
        case Answered(decision=decision):
            return f"answered {decision}"
        case Expired(on_timeout=on_timeout):
            return f"its deadline passes: {on_timeout}"
        case None:
            return ""
        case node_input:
            return type(node_input).__name__


def describe_state(system: SystemState) -> list[str]:
    lines = []
    for number, traversal in enumerate(system.traversals, 1):
        lines.append(
            f"traversal {number}: {traversal.action} {traversal.state}, "
            f"active {traversal.active_nodes}, wake {traversal.wake}, "
            f"timed out {traversal.timed_out}"
        )
        for node_plan, node in zip(traversal.graph.nodes, traversal.nodes, strict=True):
            if node is not None:
                lines.append(
                    f"  {node_plan.name} ({node_plan.direction}, row {node.resource}): "
                    f"{node.operation} {node.state} in {node.phase}, "
                    f"waits {node.pending_dependencies}, "
                    f"claim {node.claim}, wake {node.wake}, successor {node.successor}"
                )
    lines += [f"row {row}" for row in system.rows]
    lines += [f"hook {hook}" for hook in system.hooks]
    lines += [f"worker {worker[:4]}" for worker in system.workers]
    return lines
