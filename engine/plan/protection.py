"""What protects a resource from being deleted or replaced: its protection, and `prevent_destroy`.

engine/plan/cleanup.py refuses a plan that deletes a protected resource.
engine/work/nodes/refusals.py refuses the operation if a node turns out to delete or replace one
when it executes.

A deletion policy forbids nothing: with `Retain`, the resource leaves the stack, and its physical
resource stays (`cleanup_change` in engine/plan/resource_change.py).
"""

from dataclasses import dataclass

from engine.words import Operation


@dataclass(frozen=True, slots=True)
class DestroyRefusal:
    """Why a resource must not be deleted or replaced, and the remedy."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}. {self.remedy}"


def destroy_refusal(
    name: str, operation: Operation | None, *, protected: bool, prevented: bool
) -> DestroyRefusal | None:
    """Return why a delete or a replacement is refused; None for other operations.

    protected: a user has protected the resource. prevented: its template has `prevent_destroy`.
    """
    if operation not in (Operation.REPLACE, Operation.DELETE):
        return None
    if protected:
        return DestroyRefusal(
            f'"{name}" is protected: {operation} refused until its protection is lifted',
            f"Lift its protection first: headgate resource unprotect STACK {name}",
        )
    return refuse_prevented(name, operation) if prevented else None


def refuse_prevented(name: str, operation: Operation) -> DestroyRefusal:
    """Return why a delete or a replacement of a resource with `prevent_destroy` is refused."""
    reason = f'"{name}" has prevent_destroy: {operation} refused'
    return DestroyRefusal(reason, _REMEDIES[operation])


_REMEDIES = {
    Operation.DELETE: "Update the stack with prevent_destroy: false first.",
    Operation.REPLACE: "Undo the change that replaces it, or set prevent_destroy: false.",
}
