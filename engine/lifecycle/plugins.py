"""The plug-ins that are installed, asked and told in their order."""

import asyncio
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint
from inspect import isawaitable

import structlog
from structlog.typing import FilteringBoundLogger

from engine.installed import entry_points, make, misfit
from engine.lifecycle.contract import Ended, LifecyclePlugin, Refused, StackView

ENTRY_POINTS = "headgate.lifecycle"
#: Seconds that one plug-in may take to say something.
LONGEST = 30.0

log: FilteringBoundLogger = structlog.get_logger()


class Plugins:
    def __init__(
        self, plugins: Iterable[LifecyclePlugin] = (), *, longest: float = LONGEST
    ) -> None:
        self._plugins = sorted(plugins, key=lambda one: (one.ordinal, type(one).__name__))
        self._longest = longest

    def __bool__(self) -> bool:
        return bool(self._plugins)

    async def before(self, view: StackView) -> str | None:
        """Ask them all, in ascending order; why one refused, or None. Who let it pass is told."""
        passed: list[LifecyclePlugin] = []
        for plugin in self._plugins:
            refusal = await self._asked(plugin, view)
            if refusal is not None:
                await self._told(passed, view, Ended("failed", refusal, began=False))
                return refusal
            passed.append(plugin)
        return None

    async def after(self, view: StackView, ended: Ended) -> None:
        await self._told(self._plugins, view, ended)

    async def _asked(self, plugin: LifecyclePlugin, view: StackView) -> str | None:
        name = type(plugin).__name__
        try:
            async with asyncio.timeout(self._longest):
                said = plugin.before(view)
                if isawaitable(said):
                    await said
        except Refused as refused:
            return f"{name} refused it: {refused}"
        except TimeoutError:
            return f"{name} did not answer within {self._longest:g} s, and so refuses it"
        except Exception as error:
            log.error("lifecycle.bug", plugin=name, stack_id=str(view.stack_id), exc_info=error)
            return f"{name} failed with {type(error).__name__}, and so refuses it"
        return None

    async def _told(
        self, plugins: Sequence[LifecyclePlugin], view: StackView, ended: Ended
    ) -> None:
        for plugin in reversed(plugins):
            try:
                async with asyncio.timeout(self._longest):
                    said = plugin.after(view, ended)
                    if isawaitable(said):
                        await said
            except Exception as error:
                name = type(plugin).__name__
                log.error("lifecycle.bug", plugin=name, stack_id=str(view.stack_id), exc_info=error)


def installed() -> Plugins:
    """Raises Unavailable for one that does not load: without it, what it guards is not guarded."""
    return Plugins([_load(point) for point in entry_points(ENTRY_POINTS)])


def _load(point: EntryPoint) -> LifecyclePlugin:
    made = make(point, "lifecycle")
    if not isinstance(made, LifecyclePlugin):
        raise misfit(point, "lifecycle", LifecyclePlugin)
    return made
