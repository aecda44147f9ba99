"""Moves and worlds in words, for whoever reads how something went wrong."""

from collections.abc import Sequence

from engine.node.inputs import Answered, Expired
from tests.model.protocol import Move
from tests.model.world import Hand, World


def told_in_words(sequence: Sequence[Move], world: World) -> str:
    """The moves, numbered, and the world they lead to."""
    lines = [f"{at:3}. {move_in_words(move, world)}" for at, move in enumerate(sequence, 1)]
    return "\n".join([*lines, *world_in_words(world)])


def move_in_words(move: Move, world: World) -> str:
    where = _node(move, world)
    told = move.hand.told if move.hand else None
    match move.kind:
        case "request":
            return "the next request is accepted"
        case "claim":
            return f"a worker claims {where}"
        case "call":
            return f"{_claim(move.hand)} calls the operation of {where}: {_said(move)}"
        case "settle":
            unsure = " and does not hear that it did" if move.said else ""
            state = f"{told.state} in {told.phase}" if told else ""
            return f"{_claim(move.hand)} settles {where} as {state}{unsure}"
        case "again":
            return f"{_claim(move.hand)} settles {where} once more"
        case "hook":
            point = move.hook.point if move.hook else ""
            return f"{point} of {where}: {_said(move)}"
        case "late":
            return f"the time of {where} is over"
        case "end":
            return f"a worker ends {where}"
        case _:
            return f"{_claim(move.hand)} of {where} is lost with its worker"


def _node(move: Move, world: World) -> str:
    if move.node < 0 or move.traversal == 0:
        return f"traversal {move.traversal}"
    fixed = world.traversal(move.traversal).graph.nodes[move.node]
    return f"{move.traversal}/{fixed.name} ({fixed.direction}, row {fixed.resource})"


def _claim(hand: Hand | None) -> str:
    return "nobody" if hand is None else f"claim {hand.claim} ({hand.stage})"


def _said(move: Move) -> str:
    match move.said:
        case Answered(decision=decision):
            return f"answered {decision}"
        case Expired(on_timeout=on_timeout):
            return f"its deadline comes: {on_timeout}"
        case None:
            return ""
        case said:
            return type(said).__name__


def world_in_words(world: World) -> list[str]:
    lines = []
    for number, traversal in enumerate(world.traversals, 1):
        lines.append(
            f"traversal {number}: {traversal.action} {traversal.state}, "
            f"active {traversal.active}, wake {traversal.wake}, late {traversal.late}"
        )
        for fixed, node in zip(traversal.graph.nodes, traversal.nodes, strict=True):
            if node is not None:
                lines.append(
                    f"  {fixed.name} ({fixed.direction}, row {node.resource}): {node.operation} "
                    f"{node.state} in {node.phase}, waits {node.waits}, claim {node.claim}, "
                    f"wake {node.wake}, successor {node.successor}"
                )
    lines += [f"row {row}" for row in world.rows]
    lines += [f"hook {hook}" for hook in world.hooks]
    lines += [f"hand {hand[:4]}" for hand in world.hands]
    return lines
