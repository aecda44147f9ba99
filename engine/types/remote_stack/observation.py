"""Compares a remote stack with the resource that manages it. Pure."""

from collections.abc import Iterator, Mapping

from engine.types.observation import PRESENT, Difference, Observation
from engine.types.remote_stack.api import RemoteStackView
from engine.types.text_cleaning import as_text
from engine.words import Json, ObservedState

#: What Heat and Headgate show in place of the value of a hidden parameter.
_HIDDEN = "******"
_SIMPLE = str | int | float
_IS_GONE = "the remote stack does not exist"
GONE = Observation(ObservedState.MISSING, (), _IS_GONE, _IS_GONE)


def observe_stack(properties: Mapping[str, Json], shown: RemoteStackView) -> Observation:
    """A stack whose action is in progress is compared when the action has ended."""
    if shown.status == "IN_PROGRESS":
        return PRESENT
    if shown.status != "COMPLETE":
        public = f"the remote stack is {shown.action}_{shown.status}"
        reason = f"{public}: {shown.reason}" if shown.reason else public
        return Observation(ObservedState.DEGRADED, (), reason, public)
    given = properties.get("parameters") or {}
    differences = list(_differences(given, shown.parameters))
    absent = [
        f"parameters.{name}"
        for name, value in given.items()
        if isinstance(value, _SIMPLE) and name not in shown.parameters
    ]
    return Observation.from_comparison("the remote stack", differences, absent)


def _differences(given: Mapping[str, Json], observed: Mapping[str, Json]) -> Iterator[Difference]:
    """Of parameters that are not hidden, and that are neither lists nor maps: servers write those
    in different ways."""
    for name, value in given.items():
        found = observed.get(name)
        simple = isinstance(value, _SIMPLE) and not isinstance(found, dict | list)
        if simple and found not in (None, _HIDDEN) and not _is_same(value, found):
            yield Difference.shorten(f"parameters.{name}", value, found)


def _is_same(given: Json, observed: Json) -> bool:
    """Parameters are shown as texts, for example `True` and `3`."""
    if isinstance(given, bool) or isinstance(observed, bool):
        return as_text(given).lower() == as_text(observed).lower()
    if isinstance(given, str):
        return given == as_text(observed)
    try:
        return float(given) == float(observed)
    except (TypeError, ValueError):
        return False
