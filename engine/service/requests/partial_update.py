"""Partial updates: which resources `only` and `except` of a request select."""

from collections.abc import Callable, Collection, Sequence

from engine.errors import Findings, nearest
from engine.hot.syntax.globs import matches_glob
from engine.service.requests.requests import StackRequest


def partial_filter(request: StackRequest, names: Collection[str]) -> Callable[[str], bool] | None:
    """A function that returns whether a resource may change; None if the update is not partial.

    names: of all resources, existing and new. Raises Invalid for a pattern that matches none.
    """
    if not request.only and not request.except_:
        return None
    findings = Findings()
    for place, patterns in (("only", request.only), ("except", request.except_)):
        for pattern in patterns:
            if not _any(pattern, names):
                known = sorted(names)
                findings.add(place, f'"{pattern}" matches no resource', nearest(pattern, known))
    findings.raise_if_any()

    def chosen(name: str) -> bool:
        wanted = not request.only or _matches(name, request.only)
        return wanted and not _matches(name, request.except_)

    return chosen


def _any(pattern: str, names: Collection[str]) -> bool:
    return any(matches_glob(name, pattern) for name in names)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(matches_glob(name, pattern) for pattern in patterns)
