"""Output formats of results: -o table, wide, json, yaml, name and jsonpath=..."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

Json = Any


class FormatKind(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    JSONPATH = "jsonpath"


@dataclass(frozen=True, slots=True)
class ResultFormat:
    """expression: of a JSONPath."""

    kind: FormatKind = FormatKind.TABLE
    expression: str = ""

    @property
    def is_document(self) -> bool:
        """Whether programs read the result."""
        return self.kind not in (FormatKind.TABLE, FormatKind.WIDE)


TABLE, JSON = ResultFormat(), ResultFormat(FormatKind.JSON)
#: What -o accepts.
ACCEPTED = "table, wide, json, yaml, name or jsonpath=EXPRESSION"


class FormatError(Exception):
    """The format is not known, or the result does not have it."""


def read_format(text: "str | ResultFormat") -> ResultFormat:
    """Read the value of -o. Raises FormatError."""
    if isinstance(text, ResultFormat):
        return text
    word, separator, expression = text.partition("=")
    if word == FormatKind.JSONPATH:
        if not expression:
            raise FormatError("jsonpath needs an expression: jsonpath='{.stack_status}'")
        _compile(expression)
        return ResultFormat(FormatKind.JSONPATH, expression)
    if separator or word not in list(FormatKind):
        raise FormatError(f'"{text}" is not an output format; use {ACCEPTED}')
    return ResultFormat(FormatKind(word))


def format_json(value: Json) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def format_yaml(value: Json) -> str:
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True)).rstrip()


def format_document(document: Json, result_format: ResultFormat) -> str:
    """A result as text for programs; empty without a match. Raises FormatError."""
    match result_format.kind:
        case FormatKind.YAML:
            return format_yaml(document)
        case FormatKind.NAME:
            items = document if isinstance(document, list) else [document]
            return "\n".join(map(name_of, items))
        case FormatKind.JSONPATH:
            found = find_values(document, result_format.expression)
            return "\n".join(one if isinstance(one, str) else _one_line(one) for one in found)
        case _:
            return format_json(document)


def find_values(document: Json, expression: str) -> list[Json]:
    """What a JSONPath matches. Raises FormatError."""
    return list(_compile(expression).findall(document))


def name_of(document: Json) -> str:
    """What names the object in an argument: the name of a stack, resource or resource type, else an
    ID. Raises FormatError."""
    if isinstance(document, Mapping):
        for name, mark in (
            ("stack_name", "stack_status"),
            ("resource_name", "resource_type"),
            ("resource_type", "resource_type"),
            ("id", "id"),
            ("name", "name"),
        ):
            if document.get(name) and mark in document:
                return str(document.get(f"headgate_{name}") or document[name])
    if isinstance(document, str):
        return document
    raise FormatError("this result has no name; use -o json")


def _one_line(value: Json) -> str:
    return orjson.dumps(value).decode()


def _compile(expression: str) -> Any:
    """A JSONPath as in RFC 9535, or as kubectl writes it: {.name}. Raises FormatError."""
    from jsonpath import JSONPathError, compile

    text = expression.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    try:
        return compile(text if text.startswith("$") else f"${text}")
    except JSONPathError as error:
        raise FormatError(f'"{expression}" is not a JSONPath: {error}') from error
