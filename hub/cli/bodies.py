"""Bodies of requests, from options of the command line."""

from collections.abc import Sequence
from typing import Any

import typer

from engine.words import STACK_POINTS, Point

Json = Any
BEFORE_ANYTHING = (Point.PRE_CREATE, Point.PRE_UPDATE, Point.PRE_REPLACE, Point.PRE_DELETE)


def options(
    tags: Sequence[str], minutes: int | None, rollback: bool | None = None
) -> dict[str, Json]:
    """What is left out stays as it is."""
    said: dict[str, Json] = {"tags": ",".join(tags)} if tags else {}
    said |= {} if minutes is None else {"timeout_mins": minutes}
    return said | ({} if rollback is None else {"disable_rollback": not rollback})


def hooks(clear: Sequence[str], add: Sequence[str]) -> dict[str, Json]:
    return {"hooks": {"clear": list(clear), "add": breaks(add)}} if clear or add else {}


def breaks(places: Sequence[str]) -> list[str]:
    """``resource:point`` texts. A resource without a point: before anything is done to it."""
    found: list[str] = []
    for place in places:
        whole = ":" in place or place in STACK_POINTS
        found += [place] if whole else [f"{place}:{point}" for point in BEFORE_ANYTHING]
    return found


def plan(digest: str) -> dict[str, Json]:
    return {"plan_digest": digest} if digest else {}


def partial(only: Sequence[str], except_: Sequence[str], moved: Sequence[str]) -> dict[str, Json]:
    """Raises typer's usage error."""
    said = {
        "only": list(only),
        "except": list(except_),
        "moved": [move(text) for text in moved],
    }
    return {name: value for name, value in said.items() if value}


def move(text: str) -> dict[str, Json]:
    """``FROM=TO`` or ``STACK:FROM=TO``; raises typer's usage error."""
    source, equals, to = text.partition("=")
    stack, colon, name = source.partition(":")
    if not equals or not to or not source or (colon and not (stack and name)):
        raise typer.BadParameter(f'"{text}" is not a valid move; write FROM=TO or STACK:FROM=TO')
    return {"from": {"stack": stack, "resource": name} if colon else source, "to": to}
