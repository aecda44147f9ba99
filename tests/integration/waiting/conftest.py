"""The program fixture, as in the tests of hooks."""

import pytest

from tests.support.program import Program


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project
