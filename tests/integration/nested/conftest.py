"""The type whose operations do what a test says, also inside of stacks."""

from tests.integration.hooks.conftest import run, world

__all__ = ["run", "world"]
