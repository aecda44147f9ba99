"""Templates and environments from files, with what they refer to."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from engine.errors import HeadgateError
from engine.hot.syntax.document import read_document
from hub.cli.file_references import FileReferences, Unreadable, parsed, read_text

Json = Any


def template_body(path: Path) -> dict[str, Json]:
    """{template: text, files: {name: text}}: what it refers to is sent along."""
    text = read_text(path)
    referred = FileReferences(path.parent)
    referred.by_template(path, parsed(text, path))
    return {"template": text, "files": referred.texts}


def environment_body(paths: Sequence[Path]) -> dict[str, Json]:
    """Environments in their order: the server merges them. Their templates are sent along."""
    texts = {str(path): read_text(path) for path in paths}
    files: dict[str, str] = {}
    for path in paths:
        referred = FileReferences(path.parent)
        if text := texts[str(path)].strip():
            referred.by_environment(path, parsed(text, path))
        files = together(files, referred.texts)
    if len(paths) == 1:
        return {"environment": texts[str(paths[0])]} | ({"files": files} if files else {})
    if not paths:
        return {}
    return {"environment_files": [*texts], "files": together(texts, files)}


def parameters(pairs: Sequence[str], files: Sequence[str] = ()) -> dict[str, Json]:
    """pairs: ``key=value``. files: ``key=path``, for a text that a command line should not hold."""
    plain = dict(_pair(pair, "parameter", "key=value") for pair in pairs)
    read = dict(_pair(pair, "parameter file", "key=path") for pair in files)
    twice = sorted(plain.keys() & read.keys())
    if twice:
        raise Unreadable(f"parameter {twice[0]}: given both as a value and as a file")
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
            raise Unreadable(f"{what} {key}: given twice")
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
        return parsed(text, path)


def joined(*bodies: Mapping[str, Json]) -> dict[str, Json]:
    """One body of several; their files together. Raises Unreadable."""
    body: dict[str, Json] = {}
    files: dict[str, str] = {}
    for one in bodies:
        files = together(files, one.get("files", {}))
        body |= one
    if files:
        body["files"] = files
    return body


def together(files: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Raises Unreadable where one name stands for two texts."""
    for name in files.keys() & more.keys():
        if files[name] != more[name]:
            raise Unreadable(f"{name}: two files have this name; rename one of them")
    return {**files, **more}


def dump(value: Json) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def dump_yaml(value: Json) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()
