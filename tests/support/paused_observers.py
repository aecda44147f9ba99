"""Observers that programs do not run, so that tests run their own."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.hooks.drift_digests import DriftDigests
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
    found = _find_paused(run)
    return found.registry, found._policies


def paused_digests(run: Program) -> DriftDigests:
    """The digests of drift of the program."""
    digests = _find_paused(run)._batches._digests
    assert digests is not None
    return digests


def _find_paused(run: Program) -> Observer:
    return [one for one in _paused if one._database is run.database][-1]
