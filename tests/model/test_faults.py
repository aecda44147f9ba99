"""Each invariant detects the faults planted for it."""

import pytest

from tests.model.faults import FAULTS, Fault, find_counterexample


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.description)
def test_a_fault_is_detected(fault: Fault) -> None:
    counterexample = find_counterexample(fault)
    assert counterexample is not None
    print(f"{fault.description}: {counterexample}")
