"""The installed lifecycle plug-ins, called in their order."""

from collections.abc import Iterable, Sequence
from functools import partial
from importlib.metadata import EntryPoint

import structlog
from structlog.typing import FilteringBoundLogger

from engine.installed import call_plugin, entry_points, load_plugin, wrong_type_error
from engine.lifecycle.contract import Ended, LifecyclePlugin, Refused, StackView

ENTRY_POINTS = "headgate.lifecycle"
#: Seconds that one call of a plug-in may take.
MAX_SECONDS = 30.0

log: FilteringBoundLogger = structlog.get_logger()


class Plugins:
    def __init__(
        self, plugins: Iterable[LifecyclePlugin] = (), *, max_seconds: float = MAX_SECONDS
    ) -> None:
        self._plugins = sorted(plugins, key=lambda one: (one.ordinal, type(one).__name__))
        self._max_seconds = max_seconds

    def __bool__(self) -> bool:
        return bool(self._plugins)

    async def before(self, view: StackView) -> str | None:
        """Call `before` of all plug-ins in ascending order. Return why one refused, or None.

        After a refusal, `after` of those that accepted is called.
        """
        accepted: list[LifecyclePlugin] = []
        for plugin in self._plugins:
            refusal = await self._call_before(plugin, view)
            if refusal is not None:
                await self._notify_ended(accepted, view, Ended("failed", refusal, accepted=False))
                return refusal
            accepted.append(plugin)
        return None

    async def after(self, view: StackView, ended: Ended) -> None:
        await self._notify_ended(self._plugins, view, ended)

    async def _call_before(self, plugin: LifecyclePlugin, view: StackView) -> str | None:
        name = type(plugin).__name__
        try:
            await call_plugin(partial(plugin.before, view), self._max_seconds)
        except Refused as refused:
            return f"{name} refused it: {refused}"
        except TimeoutError:
            return f"{name} did not answer within {self._max_seconds:g} s, which refuses the action"
        except Exception as error:
            log.error("lifecycle.failed", plugin=name, stack_id=str(view.stack_id), exc_info=error)
            return f"{name} failed, which refuses the action; see the server's log"
        return None

    async def _notify_ended(
        self, plugins: Sequence[LifecyclePlugin], view: StackView, ended: Ended
    ) -> None:
        for plugin in reversed(plugins):
            try:
                await call_plugin(partial(plugin.after, view, ended), self._max_seconds)
            except Exception as error:
                name = type(plugin).__name__
                log.error(
                    "lifecycle.failed", plugin=name, stack_id=str(view.stack_id), exc_info=error
                )


def load_installed() -> Plugins:
    """Load all installed plug-ins. Raises Unavailable if one does not load."""
    return Plugins([_load(point) for point in entry_points(ENTRY_POINTS)])


def _load(point: EntryPoint) -> LifecyclePlugin:
    made = load_plugin(point, "lifecycle")
    if not isinstance(made, LifecyclePlugin):
        raise wrong_type_error(point, "lifecycle", LifecyclePlugin)
    return made
