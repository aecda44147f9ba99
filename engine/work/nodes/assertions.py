"""Evaluates the preconditions and postconditions of a resource when its node executes."""

from typing import Final

from engine.hot.evaluation.assertions import decode_assertions, failed_assertion
from engine.hot.functions.cost_budget import resolution_budget
from engine.hot.functions.function import FunctionError
from engine.words import Json, Operation, Phase
from engine.work.nodes.prepare import HIDDEN_REASON, Inputs, PreparedNode, has_secrets
from engine.work.nodes.transition_encoder import Result

#: Operations that conditions are about.
CHECKED: Final = frozenset({
    Operation.CREATE, Operation.UPDATE, Operation.REPLACE, Operation.ADOPT,
})  # fmt: skip


def failed_precondition(prepared: PreparedNode) -> str | None:
    """Return the reason of the first precondition that does not hold before the operation, or
    None. Those of an operation that has begun are not evaluated again.
    """
    work = prepared.work
    stored = (work.definition or {}).get("preconditions")
    if not stored or work.phase != Phase.PRE or prepared.change.operation not in CHECKED:
        return None
    return _first_failure(prepared, "precondition", stored, Inputs(work.inputs or {}))


def failed_postcondition(prepared: PreparedNode, result: Result) -> str | None:
    """Return the reason of the first postcondition that does not hold after the operation, or
    None. result: with the reference and the attributes of the resource.
    """
    work = prepared.work
    stored = (work.definition or {}).get("postconditions")
    if not stored or Operation(work.operation) not in CHECKED:
        return None
    own = [result.reference, result.attributes, result.secret_attributes]
    view = Inputs({**(work.inputs or {}), work.name: own})
    return _first_failure(
        prepared, "postcondition", stored, view, secret=bool(result.secret_attributes)
    )


def _first_failure(
    prepared: PreparedNode, kind: str, stored: Json, view: Inputs, *, secret: bool = False
) -> str | None:
    work = prepared.work

    def describe(wrong: FunctionError) -> str:
        return HIDDEN_REASON if secret or has_secrets(work) else str(wrong)

    assertions = decode_assertions(stored, (work.definition or {})["version"])
    return failed_assertion(kind, assertions, view, resolution_budget(), describe)
