"""Fixtures with a type whose operations the test controls, also in nested stacks."""

from tests.integration.hooks.conftest import run, world

__all__ = ["run", "world"]
