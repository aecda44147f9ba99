"""The rules see what they are for: each is shown a mistake, and must find it."""

import pytest

from tests.model.faults import FAULTS, Fault, found


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.what)
def test_a_mistake_is_seen(fault: Fault) -> None:
    seen = found(fault)
    assert seen is not None
    print(f"{fault.what}: {seen}")
