"""Sources of settings, and findings about invalid ones: source, name, reason and remedy.

`hub.settings.settings.load_settings` calls it. It does not depend on particular settings.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from engine import errors
from engine.hooks.durations import format_duration
from hub.settings.types import INVALID
from hub.validation_messages import describe

PREFIX = "HEADGATE_"
SEPARATOR = "__"
CODE = "InvalidSettings"
#: Stands for a text in an example.
TEXT = "TEXT"

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one source.

    file: path of the file; empty for environment and command line. lines: the line of each place
    in it. options: command-line options by dotted name.
    """

    tree: Mapping[str, Any]
    file: str = ""
    lines: Mapping[Place, int] = field(default_factory=dict)
    environment: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    def at(self, place: Place) -> Any:
        """Return the value at a place, or None if this source does not set it."""
        value: Any = self.tree
        for part in place:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value


def read_file(path: Path) -> Layer:
    """Read a TOML file. Raises Invalid, naming file and line."""
    try:
        text = path.read_text(encoding="utf-8")
        return Layer(tomllib.loads(text), file=str(path), lines=locate(text))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the file is not UTF-8 text"
        raise _invalid(
            str(path), f"cannot read the file: {reason}", "Check the path and its permissions."
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise _invalid(
            str(path), f"invalid TOML: {error}", "Correct the file at this position."
        ) from None
    except ValueError as error:  # a number with thousands of digits
        raise _invalid(str(path), f"invalid TOML: {error}", "Correct the file.") from None
    except RecursionError:
        raise _invalid(
            str(path), "invalid TOML: values are nested too deeply", "Correct the file."
        ) from None


def check_regular(path: Path) -> None:
    """Raises Invalid unless the path is a regular file: reading a FIFO or a device can block."""
    if not path.is_file():
        raise _invalid(
            str(path), "this is not a regular file any more", "Write the settings to this file."
        )


def locate(text: str) -> dict[Place, int]:
    """The line, from 1, of each section, setting and list item of a valid TOML document."""
    lines: dict[Place, int] = {}
    sizes: dict[Place, int] = {}
    section: Place = ()
    statement, begin = "", 1
    for number, line in enumerate(text.splitlines(), start=1):
        statement += f"{line}\n"
        try:
            tree = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue  # a value of several lines
        if line.lstrip().startswith("[") and statement == f"{line}\n":
            section = _section(tree, sizes)
            lines.setdefault(section, number)
        else:
            _locate_values(tree, section, begin, lines)
        statement, begin = "", number + 1
    return lines


def _section(tree: Mapping[str, Any], sizes: dict[Place, int]) -> Place:
    """The place of a section header. sizes: of the arrays of sections so far; updated."""
    place: Place = ()
    value: Any = tree
    while value:
        ((name, value),) = value.items()
        place = (*place, name)
        if isinstance(value, list):
            sizes[place] = sizes.get(place, 0) + 1
            value = None
        if place in sizes:
            place = (*place, sizes[place] - 1)
    return place


def _locate_values(value: Any, place: Place, line: int, lines: dict[Place, int]) -> None:
    lines.setdefault(place, line)
    if isinstance(value, Mapping):
        for name, below in value.items():
            _locate_values(below, (*place, name), line, lines)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            _locate_values(below, (*place, index), line, lines)


def read_environment(variables: Mapping[str, str]) -> Layer:
    """Read HEADGATE_SECTION__NAME. Variables such as HEADGATE_URL are not settings."""
    dotted = {
        name.removeprefix(PREFIX).lower().replace(SEPARATOR, "."): value
        for name, value in variables.items()
        if name.startswith(PREFIX) and SEPARATOR in name.removeprefix(PREFIX)
    }
    return Layer(nest(dotted), environment=True)


def nest(dotted: Mapping[str, Any]) -> dict[str, Any]:
    """Convert ``{"server.listen": ...}`` to ``{"server": {"listen": ...}}``, without None."""
    tree: dict[str, Any] = {}
    for name, value in dotted.items():
        if value is not None:
            for part in reversed(name.split(".")):
                value = {part: value}
            tree = merge(tree, value)
    return tree


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two trees: tables are merged, other values are replaced by those of `over`."""
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[name] = merge(below, value) if both and below is not None else value
    return result


def finding(
    detail: ErrorDetails, layers: Sequence[Layer], settings: type[BaseModel]
) -> errors.Finding:
    """Describe an error in one setting. Contains names, and no values that may be secret."""
    context = detail.get("ctx", {})
    place: Place = (*detail["loc"], *context.get("place", ()))
    reason, remedy = describe(detail), ""
    source = _source(place, layers)
    match detail["type"]:
        case "extra_forbidden":
            name = str(place[-1])
            reason = "unknown setting"
            remedy = _elsewhere(name, settings) or _near(name, _names(settings, place[:-1]))
        case "missing":
            reason, remedy = "this setting is required", f"Add {place[-1]} to this section"
        case "model_type":
            reason = "this is a section, not a setting"
            remedy = f"Write {_header(place)} on a line of its own, and the settings below it"
            if source.environment:
                remedy = f"Set variables such as {_variable((*place, 'NAME'))}"
        case "literal_error":
            # No example: the default of [auth] mode would switch authentication off.
            choices = re.findall(r"'([^']*)'", context["expected"])
            remedy = errors.nearest(str(source.at(place)), choices) or "Write one of these values"
        case kind if kind == INVALID:
            reason, remedy = context["reason"], context["remedy"]
    if not remedy and "such as" not in reason:
        remedy = _example(place, settings, source)
    return errors.Finding(_format_place(place, source), reason, remedy, CODE)


def _source(place: Place, layers: Sequence[Layer]) -> Layer:
    """The source that sets this place, else the one that sets the nearest section above it."""
    for length in range(len(place), 0, -1):
        for layer in reversed(layers):
            if layer.at(place[:length]) is not None:
                return layer
    return Layer({})


def _invalid(place: str, reason: str, remedy: str) -> errors.Invalid:
    return errors.Invalid([errors.Finding(place, reason, remedy, CODE)])


def _format_place(place: Place, source: Layer) -> str:
    """Format a place as in its source: ``FILE, line 2: [server] listen``, or the variable."""
    item = f", item {place[-1] + 1}" if isinstance(place[-1], int) else ""
    if source.environment:
        return _variable(place) + item
    if option := source.options.get(".".join(map(str, place))):
        return option
    text = _in_file(_without_item(place), source) + item
    if not source.file:
        return text
    above = (place[:length] for length in range(len(place), 0, -1))
    line = next((source.lines[one] for one in above if one in source.lines), 0)
    return f"{source.file}, line {line}: {text}" if line else f"{source.file}: {text}"


def _in_file(place: Place, source: Layer) -> str:
    """Such as ``[server]``, ``[server] listen`` or ``[[hooks.rules]] 2, on``."""
    value = source.at(place)
    if isinstance(value, Mapping) or (len(place) == 1 and value is None):
        return _header(place)
    *section, name = place
    numbers = [part + 1 for part in section if isinstance(part, int)]
    if numbers:
        return f"{_header(section)} {numbers[-1]}, {name}"
    return f"{_header(section)} {name}" if section else str(name)


def _header(place: Sequence[str | int]) -> str:
    """Such as ``[server]``, or ``[[hooks.rules]]`` for a list of sections."""
    names = ".".join(part for part in place if isinstance(part, str))
    return f"[[{names}]]" if any(isinstance(part, int) for part in place) else f"[{names}]"


def _without_item(place: Place) -> Place:
    return _without_item(place[:-1]) if isinstance(place[-1], int) else place


def _variable(place: Place) -> str:
    return PREFIX + SEPARATOR.join(part for part in place if isinstance(part, str)).upper()


def _example(place: Place, settings: type[BaseModel], source: Layer) -> str:
    """How to write the default of a setting, or another value of its type."""
    place = _without_item(place)
    model, name = _model_at(settings, place[:-1]), str(place[-1])
    known = model.model_fields.get(name) if model else None
    if known is not None and _model_in(known.annotation) is not None:
        header = [*place, "NAME"] if _is_by_name(known) else [*place, 0]
        return f"Write sections {_header(header)} in the settings file"
    value = known.default if known else None
    if not isinstance(value, Mapping) and _plain(value) in ("", TEXT):
        is_list = known is None or get_origin(known.annotation) is tuple
        value = [TEXT] if is_list else TEXT
    if source.environment:
        return f"Write, for example, {_variable(place)}={_plain(value)}"
    return f"Write, for example, {name} = {_toml(value)}"


def _toml(value: Any) -> str:
    match value:
        case bool() | int() | float():
            return str(value).lower()
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case Mapping():
            return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
        case _:
            return f'"{_plain(value)}"'


def _plain(value: Any) -> str:
    match value:
        case timedelta():
            return format_duration(value)
        case list() | tuple():
            return ",".join(map(_plain, value))
        case bool():
            return str(value).lower()
        case str() | int() | float() | Path():
            return str(value)
        case _:  # a secret, or no default
            return TEXT


def _names(settings: type[BaseModel], place: Place) -> list[str]:
    model = _model_at(settings, place)
    return list(model.model_fields) if model else []


def _model_at(settings: type[BaseModel], place: Place) -> type[BaseModel] | None:
    """The section at a place; None: there is no section."""
    model: type[BaseModel] | None = settings
    names = iter(part for part in place if isinstance(part, str))
    for name in names:
        known = model.model_fields.get(name) if model else None
        if known is None:
            return None
        model = _model_in(known.annotation)
        if _is_by_name(known):
            next(names, None)
    return model


def _is_by_name(known: FieldInfo) -> bool:
    """Whether it holds sections by names that the operator chooses."""
    return get_origin(known.annotation) is Mapping and _model_in(known.annotation) is not None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    candidates = (annotation, *get_args(annotation))
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def _near(name: str, names: Sequence[str]) -> str:
    if near := errors.nearest(name, names):
        return near
    return f"Known here: {', '.join(names)}" if names else ""


def _elsewhere(name: str, settings: type[BaseModel]) -> str:
    sections = [place for place, names in _sections(settings, ()) if name in names]
    return f"It belongs under [{'.'.join(sections[0])}]" if len(sections) == 1 else ""


def _sections(
    model: type[BaseModel], place: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    for name, known in model.model_fields.items():
        if (below := _model_in(known.annotation)) is not None:
            yield (*place, name), list(below.model_fields)
            yield from _sections(below, (*place, name))
