"""What protects a resource from being deleted or replaced."""

import pytest

from engine.hot.definition.stack import ResourceDefinition
from engine.plan.draft import ExistingResource, Options
from engine.plan.passes import plan
from engine.plan.protection import destroy_refusal
from engine.words import DeletionPolicy, Operation, ResourceAction
from tests.unit.plan.test_passes import defined, row


@pytest.mark.parametrize("operation", [Operation.REPLACE, Operation.DELETE])
def test_protection_refuses_to_destroy(operation: Operation) -> None:
    protected = destroy_refusal("a", operation, protected=True, prevented=True)
    assert protected and "unprotect STACK a" in protected.remedy
    prevented = destroy_refusal("a", operation, protected=False, prevented=True)
    assert prevented and "prevent_destroy: false" in prevented.remedy
    assert destroy_refusal("a", operation, protected=False, prevented=False) is None
    assert destroy_refusal("a", Operation.UPDATE, protected=True, prevented=True) is None


def problems(
    *rows: ExistingResource, desired: dict[str, ResourceDefinition], **options: bool
) -> list[str]:
    chosen = Options(**options)  # type: ignore[arg-type]
    found = plan(desired, rows, lambda name, stored: (), lambda: rows[0].id, chosen)
    return [one.place for one in found.problems]


def test_a_plan_that_deletes_is_refused() -> None:
    kept = row("a", 1, prevented=True)
    assert problems(kept, desired={}) == ["resources.a"]
    assert problems(kept, desired=defined(a="")) == []
    assert problems(kept, desired={}, retains=True) == []
    retained = row("a", 1, prevented=True, deletion_policy=DeletionPolicy.RETAIN)
    assert problems(retained, desired={}) == []
    assert problems(row("a", 1, prevented=True, action=ResourceAction.INIT), desired={}) == []
