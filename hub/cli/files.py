"""Templates and environments from files, with what they refer to."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from engine.errors import HeadgateError
from engine.hot.source import read_document

Json = Any


class Unreadable(Exception):
    """A file or option that cannot be used; says which and why."""


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Unreadable(f"{path}: cannot be read: {why}") from error


def template_body(path: Path) -> dict[str, Json]:
    """{template: text, files: {name: text}}: what `get_file` names is sent along."""
    text = read_text(path)
    try:
        document = read_document(text, str(path))
    except HeadgateError as error:
        raise Unreadable(f"{path}: {error}") from error
    files = {}
    for name in sorted(set(_named_files(document))):
        if "://" not in name:
            files[name] = read_text(path.parent / name)
    return {"template": text, "files": files}


def _named_files(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("get_file"), str):
            yield value["get_file"]
        for item in value.values():
            yield from _named_files(item)
    elif isinstance(value, list):
        for item in value:
            yield from _named_files(item)


def environment_body(paths: Sequence[Path]) -> dict[str, Json]:
    """Environments in their order: the server merges them."""
    if not paths:
        return {}
    if len(paths) == 1:
        return {"environment": read_text(paths[0])}
    files = {str(path): read_text(path) for path in paths}
    return {"environment_files": [str(path) for path in paths], "files": files}


def parameters(pairs: Sequence[str]) -> dict[str, Json]:
    """``key=value``, ``key=@file`` for a file's text."""
    found: dict[str, Json] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise Unreadable(f'parameter "{pair}": write it as key=value')
        found[key] = read_text(Path(value[1:])) if value.startswith("@") else value
    return found


def joined(*bodies: dict[str, Json]) -> dict[str, Json]:
    """One body of several; their files together."""
    body: dict[str, Json] = {}
    files: dict[str, str] = {}
    for one in bodies:
        files |= one.get("files", {})
        body |= one
    if files:
        body["files"] = files
    return body


def dump(value: Json) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def dump_yaml(value: Json) -> str:
    return yaml.safe_dump(value, sort_keys=False).rstrip()
