"""Observers that programs do not run, so that tests run their own."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.plan.convergence import PolicyRules
from engine.types.registry import TypeRegistry
from engine.work.observer.observer import Observer
from tests.support.program import Program

_paused: list[Observer] = []
_run = Observer.run


@contextmanager
def pause_observers() -> Iterator[None]:
    """Pause the observers of the programs that start in this context."""

    async def pause(self: Observer, stop: asyncio.Event) -> None:
        _paused.append(self)
        await stop.wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Observer, "run", pause)
        yield
    _paused.clear()


@contextmanager
def run_observers() -> Iterator[None]:
    """The observers of the programs that start in this context run, also if others are paused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Observer, "run", _run)
        yield


def paused_observer(run: Program) -> tuple[TypeRegistry, PolicyRules]:
    """The resource types of the program, and the rules of its operator."""
    found = [one for one in _paused if one._database is run.database][-1]
    return found.registry, found._policies
