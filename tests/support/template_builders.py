"""Builders of small templates that are expensive to define."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.words import Json

JSON = '{"heat_template_version": "2021-04-16", '
YAML = "heat_template_version: 2021-04-16\n"
LARGE = "z" * 1_000_000


@dataclass(frozen=True, slots=True)
class CostlyTemplate:
    """finding: a part of the expected finding; empty if the template is valid."""

    text: str
    finding: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Json] = field(default_factory=dict)
    environment: str = "{}"


def each(count: int, value: Json) -> str:
    """A template with `count` resources that have the same value in their property."""
    body = json.dumps({"type": "Test::Thing", "properties": {"value": value}})
    return JSON + '"resources": {' + ", ".join(f'"r{n}": {body}' for n in range(count)) + "}}"


def extended(**sections: Json) -> str:
    """A template of Headgate's own version."""
    return json.dumps({"heat_template_version": "2026-12-01"} | sections)


def keyed(**body: Json) -> dict[str, Json]:
    """A body of 900 resources."""
    return {"type": "Test::Thing", "for_each": [str(number) for number in range(900)]} | body


def number(digits: str) -> str:
    return YAML + f"resources: {{a: {{type: Test::Thing, properties: {{value: {digits}}}}}}}"


def section(name: str, count: int, entry: Callable[[int], Json], **more: Json) -> str:
    return json.dumps(
        {"heat_template_version": "2021-04-16", name: {f"x{n}": entry(n) for n in range(count)}}
        | more
    )


def resource(n: int, **more: Json) -> Json:
    return {"type": "Test::Thing", **more}


def nested(snippet: Callable[[Json], Json], value: Json, times: int) -> Json:
    for _ in range(times):
        value = snippet(value)
    return value


def patterns(count: int, pattern: Callable[[int], str], value: str) -> str:
    """A template with `count` parameters, each with the same default and a different pattern."""
    return section(
        "parameters",
        count,
        lambda n: {
            "type": "string",
            "default": value,
            "constraints": [{"allowed_pattern": pattern(n)}],
        },
    )


def letters(first: int, count: int, form: str = "{}") -> str:
    """`count` letters, the first of which has the number `first`, each formatted with `form`."""
    return "".join(form.format(chr(0x4E00 + first + n)) for n in range(count))


def of_text(text: str, many: int, snippet: str) -> str:
    """YAML in which one resource has a text, and `many` others use it through an alias."""
    rest = "".join(
        f" r{n}: {{type: Test::Thing, properties: {{value: {snippet}}}}}\n" for n in range(many)
    )
    first = f' a: {{type: Test::Thing, properties: {{value: &a "{text}"}}}}\n'
    return f"{YAML}resources:\n{first}{rest}"


TOO_LARGE = "functions make the stack larger than"
TOO_LONG = "take more steps than are allowed"
