"""Documents and values of the command line, in YAML or JSON."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from engine.errors import Finding, Findings, HeadgateError, Invalid
from engine.hot.syntax.document import read_document
from engine.hot.syntax.source_lines import locate
from hub.cli.inputs.files import InputError, read_text, shown_path

Json = Any


def locate_error(finding: Finding, path: Path, text: str) -> InputError:
    """An error in the text of a file, with its position and the quoted line."""
    name = shown_path(path)
    (one,) = locate([replace(finding, file=name)], {name: text})
    where = f"{name}:{one.line}:{one.column}" if one.line else name
    quote = "".join(f"\n    {line}" for line in one.quote.splitlines())
    return InputError(f"{where}: {one}{quote}", one)


def parse(text: str, path: Path) -> Json:
    """A document in YAML or JSON. Raises InputError."""
    try:
        return read_document(text, str(path), warnings=Findings())
    except Invalid as error:
        raise locate_error(error.findings[0], path, text) from error
    except HeadgateError as error:
        raise InputError(f"{path}: {error}") from error


def read_data(path: Path) -> Json:
    """Any JSON, or a map in YAML. Raises InputError."""
    return parse_data(read_text(path), path)


def parse_data(text: str, path: Path) -> Json:
    """See `read_data`."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return parse(text, path)


def read_value(text: str, place: str) -> Json:
    """One value, read with the rules of templates: dates stay text, and keys are unique."""
    indented = text.replace("\n", "\n  ")
    try:
        return read_document(f"value:\n  {indented}", place)["value"]
    except HeadgateError as error:
        raise InputError(f"{place}: {error}") from error
