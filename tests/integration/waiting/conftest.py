"""A program, called as the tests of hooks call theirs."""

import pytest

from tests.support.program import Program


@pytest.fixture
def run(running: Program) -> Program:
    return running
