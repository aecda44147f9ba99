"""The program fixture, as in the tests of hooks."""

import pytest

from tests.support.program import Program


@pytest.fixture
def run(running: Program) -> Program:
    return running
