"""Builds the commands of the CLI once: a runner would build all of them for each call."""

from collections.abc import Iterator
from functools import cache

import pytest
import typer.main


@pytest.fixture(scope="package", autouse=True)
def _commands_built_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(typer.main.get_command))
        yield
