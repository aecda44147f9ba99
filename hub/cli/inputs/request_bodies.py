"""Request bodies, from options of the command line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from engine.words import STACK_POINTS, Point
from hub.cli.inputs.files import InputError, read_text

Json = Any
BEFORE_OPERATION = (Point.PRE_CREATE, Point.PRE_UPDATE, Point.PRE_REPLACE, Point.PRE_DELETE)


def stack_options(
    tags: Sequence[str], minutes: int | None, rollback: bool | None = None
) -> dict[str, Json]:
    """Options without a value are left out."""
    body: dict[str, Json] = {"tags": ",".join(tags)} if tags else {}
    body |= {} if minutes is None else {"timeout_mins": minutes}
    return body | ({} if rollback is None else {"disable_rollback": not rollback})


def hook_changes(clear: Sequence[str], add: Sequence[str]) -> dict[str, Json]:
    return {"hooks": {"clear": list(clear), "add": breakpoints(add)}} if clear or add else {}


def breakpoints(places: Sequence[str]) -> list[str]:
    """``resource:point`` texts. A resource without a point: before any operation on it."""
    found: list[str] = []
    for place in places:
        whole = ":" in place or place in STACK_POINTS
        found += [place] if whole else [f"{place}:{point}" for point in BEFORE_OPERATION]
    return found


def plan_digest(digest: str) -> dict[str, Json]:
    return {"plan_digest": digest} if digest else {}


def strict(warnings_are_errors: bool) -> dict[str, Json]:
    return {"strict": True} if warnings_are_errors else {}


def partial_update(
    only: Sequence[str], except_: Sequence[str], moved: Sequence[str]
) -> dict[str, Json]:
    """Raises typer's usage error."""
    body = {
        "only": list(only),
        "except": list(except_),
        "moved": [move(text) for text in moved],
    }
    return {name: value for name, value in body.items() if value}


def move(text: str) -> dict[str, Json]:
    """``FROM=TO`` or ``STACK:FROM=TO``; raises typer's usage error."""
    source, equals, to = text.partition("=")
    stack, colon, name = source.partition(":")
    if not equals or not to or not source or (colon and not (stack and name)):
        raise typer.BadParameter(f'"{text}" is not a valid move; write FROM=TO or STACK:FROM=TO')
    return {"from": {"stack": stack, "resource": name} if colon else source, "to": to}


def merge_bodies(*bodies: Mapping[str, Json]) -> dict[str, Json]:
    """One body with all keys and files. Raises InputError."""
    body: dict[str, Json] = {}
    files: dict[str, str] = {}
    for one in bodies:
        files = merge_files(files, one.get("files", {}))
        body |= one
    if files:
        body["files"] = files
    return body


def merge_files(files: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Raises InputError if two different files have the same name."""
    for name in files.keys() & more.keys():
        if files[name] != more[name]:
            raise InputError(f"{name}: two files have this name; rename one of them")
    return {**files, **more}


def parameters(pairs: Sequence[str], files: Sequence[str] = ()) -> dict[str, Json]:
    """pairs: ``key=value``. files: ``key=path`` for values from files. Raises InputError for a
    file, and typer's usage error."""
    values = dict(_pair(pair) for pair in pairs)
    paths = dict(_pair(pair) for pair in files)
    if twice := sorted(values.keys() & paths.keys()):
        raise typer.BadParameter(f"parameter {twice[0]}: use either a value or a file")
    return values | {key: read_text(Path(path)) for key, path in paths.items()}


def _pair(pair: str) -> tuple[str, str]:
    """See hub/cli/malformed_pairs.py, which refuses other texts."""
    key, _, value = pair.partition("=")
    return key, value


def yaml_values(pairs: Sequence[str], option: str) -> dict[str, Json]:
    """pairs: ``key=value`` with values in YAML. Raises InputError."""
    # Imported here, because YAML takes long to load, and most commands do not read it.
    from hub.cli.inputs.documents import read_value

    values: dict[str, Json] = {}
    for pair in pairs:
        key, text = _pair(pair)
        if key in values:
            raise InputError(f"{option} {key}: is given twice; remove one of them")
        values[key] = read_value(text, f"{option} {key}")
    return values
