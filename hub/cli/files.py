"""Templates and environments from files, with what they refer to."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from engine.errors import HeadgateError
from engine.hot.source import read_document

Json = Any
#: Bytes of one file: more than any request may carry.
LARGEST = 8 * 1024 * 1024


class Unreadable(Exception):
    """A file or option that cannot be used; says which and why."""


def read_text(path: Path) -> str:
    """Raises Unreadable."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise Unreadable(f"{path}: is larger than {LARGEST} bytes")
        return raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Unreadable(f"{path}: cannot be read: {why}") from error


def template_body(path: Path) -> dict[str, Json]:
    """{template: text, files: {name: text}}: what `get_file` names is sent along."""
    text = read_text(path)
    document = _document(text, path)
    names = sorted(set(_named_files(document)))
    return {"template": text, "files": {name: _named_text(path, name) for name in names}}


def _document(text: str, path: Path) -> Json:
    try:
        return read_document(text, str(path))
    except HeadgateError as error:
        raise Unreadable(f"{path}: {error}") from error


def _named_files(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("get_file"), str):
            yield value["get_file"]
        for item in value.values():
            yield from _named_files(item)
    elif isinstance(value, list):
        for item in value:
            yield from _named_files(item)


def _named_text(template: Path, name: str) -> str:
    """A file beside the template, or in the folder one works in: a template that somebody else
    wrote must not send along what it likes from this machine."""
    place = f"{template}: get_file: {name}"
    if "://" in name:
        raise Unreadable(f"{place}: is an address; download it and name the file")
    try:
        found = (template.parent / name).resolve()
        allowed = (template.parent.resolve(), Path.cwd())
        inside = any(found.is_relative_to(folder) for folder in allowed)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{place}: is no name of a file") from error
    if Path(name).is_absolute() or not inside:
        raise Unreadable(
            f"{place}: lies outside of {allowed[0]}. "
            "Put it there, or work in a folder that holds both, and name it from the template"
        )
    try:
        return read_text(found)
    except Unreadable as error:
        raise Unreadable(f"{template}: get_file: {error}") from error


def environment_body(paths: Sequence[Path]) -> dict[str, Json]:
    """Environments in their order: the server merges them."""
    if not paths:
        return {}
    if len(paths) == 1:
        return {"environment": read_text(paths[0])}
    files = {str(path): read_text(path) for path in paths}
    return {"environment_files": [str(path) for path in paths], "files": files}


def parameters(pairs: Sequence[str], files: Sequence[str] = ()) -> dict[str, Json]:
    """pairs: ``key=value``. files: ``key=path``, for a text that a command line should not hold."""
    plain = dict(_pair(pair, "parameter", "key=value") for pair in pairs)
    read = dict(_pair(pair, "parameter file", "key=path") for pair in files)
    twice = sorted(plain.keys() & read.keys())
    if twice:
        raise Unreadable(f"parameter {twice[0]}: is given twice, as a value and as a file")
    return plain | {key: read_text(Path(path)) for key, path in read.items()}


def _pair(pair: str, what: str, form: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals or not key:
        raise Unreadable(f'{what} "{pair}": write it as {form}')
    return key, value


def yaml_values(pairs: Sequence[str], what: str) -> dict[str, Json]:
    """pairs: ``key=value``, each value read as YAML. Raises Unreadable."""
    found: dict[str, Json] = {}
    for pair in pairs:
        key, text = _pair(pair, what, "KEY=VALUE")
        if key in found:
            raise Unreadable(f"{what} {key}: is given twice")
        found[key] = _yaml(text, f"{what} {key}")
    return found


def _yaml(text: str, what: str) -> Json:
    """One value, as it would be read in a template: dates stay text, no key is there twice."""
    indented = text.replace("\n", "\n  ")
    try:
        return read_document(f"value:\n  {indented}", what)["value"]
    except HeadgateError as error:
        raise Unreadable(f"{what}: {error}") from error


def data_of(path: Path) -> Json:
    """Any JSON, or a map in YAML. Raises Unreadable."""
    text = read_text(path)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _document(text, path)


def joined(*bodies: Mapping[str, Json]) -> dict[str, Json]:
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
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()
