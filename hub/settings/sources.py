"""Sources of settings, and findings about invalid ones: name, source, reason and remedy.

`hub.settings.settings.load_settings` calls it. It does not depend on particular settings.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from engine import errors

PREFIX = "HEADGATE_"
SEPARATOR = "__"
CODE = "InvalidSettings"

Place = Sequence[str | int]


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one source. file: its name; empty for environment and command line."""

    tree: Mapping[str, Any]
    file: str = ""
    environment: bool = False

    def at(self, place: Place) -> Any:
        """Return the value at a place, or None if this source does not set it."""
        found: Any = self.tree
        for part in place:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                return None
        return found


def read_file(path: Path) -> Layer:
    """Read a TOML file. Raises Invalid, naming file and line."""
    try:
        text = path.read_text(encoding="utf-8")
        return Layer(tomllib.loads(text), file=path.name)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the file is not UTF-8 text"
        raise _invalid(str(path), f"cannot read the file: {reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise _invalid(str(path), f"invalid TOML: {error}") from None


def read_environment(variables: Mapping[str, str]) -> Layer:
    """Read HEADGATE_SECTION__NAME. Variables such as HEADGATE_URL are not settings."""
    dotted = {
        name.removeprefix(PREFIX).lower().replace(SEPARATOR, "."): value
        for name, value in variables.items()
        if name.startswith(PREFIX) and SEPARATOR in name.removeprefix(PREFIX)
    }
    return Layer(nested(dotted).tree, environment=True)


def nested(dotted: Mapping[str, Any]) -> Layer:
    """Convert ``{"server.listen": ...}`` to ``{"server": {"listen": ...}}``, without None."""
    tree: dict[str, Any] = {}
    for name, value in dotted.items():
        if value is not None:
            for part in reversed(name.split(".")):
                value = {part: value}
            tree = merged(tree, value)
    return Layer(tree)


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two trees: tables are merged, other values are replaced by those of `over`."""
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[name] = merged(below, value) if both and below is not None else value
    return result


def finding(
    detail: ErrorDetails, layers: Sequence[Layer], settings: type[BaseModel]
) -> errors.Finding:
    """Describe an error in one setting. Contains names, never values."""
    place, reason, remedy = detail["loc"], detail["msg"], ""
    known = place[:-1] if detail["type"] == "missing" else place
    source = next((layer for layer in reversed(layers) if layer.at(known) is not None), Layer({}))
    match detail["type"]:
        case "extra_forbidden":
            name = str(place[-1])
            reason = "unknown setting"
            remedy = _elsewhere(name, settings) or _near(name, _names(settings, place[:-1]))
        case "missing":
            reason = "this setting is required"
        case "model_type":
            reason = "this is a section, not a setting"
    if source.file:
        reason = f"in {source.file}: {reason}"
    return errors.Finding(_written(place, source), reason, remedy, CODE)


def _invalid(place: str, reason: str) -> errors.Invalid:
    return errors.Invalid([errors.Finding(place, reason, code=CODE)])


def _written(place: Place, source: Layer) -> str:
    """Format a place as in its source: ``[server] listen``, or the name of the variable."""
    names = [part for part in place if isinstance(part, str)]
    if source.environment:
        return PREFIX + SEPARATOR.join(names).upper()
    numbers = [part for part in place if isinstance(part, int)]
    if len(place) > 1 and isinstance(place[1], int):
        return " ".join([f"[[{place[0]}]] {place[1] + 1}:", *names[1:]]).removesuffix(":")
    if not names or isinstance(source.at(place), Mapping):
        return f"[{'.'.join(names)}]"
    if len(names) == 1:
        return names[0]
    return f"[{'.'.join(names[:-1])}] {names[-1]}" + "".join(f"[{n}]" for n in numbers)


def _names(settings: type[BaseModel], place: Place) -> list[str]:
    model: type[BaseModel] | None = settings
    for part in place:
        if isinstance(part, str) and model is not None:
            model = _model_in(model.model_fields[part].annotation)
    return list(model.model_fields) if model else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    candidates = (annotation, *get_args(annotation))
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def _near(name: str, names: Sequence[str]) -> str:
    if near := errors.nearest(name, names):
        return near
    return f"Known here: {', '.join(names)}" if names and len(names) < 12 else ""


def _elsewhere(name: str, settings: type[BaseModel]) -> str:
    sections = [place for place, names in _sections(settings, ()) if name in names]
    return f"It belongs under [{'.'.join(sections[0])}]" if len(sections) == 1 else ""


def _sections(
    model: type[BaseModel], place: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    for name, field in model.model_fields.items():
        if (below := _model_in(field.annotation)) is not None:
            yield (*place, name), list(below.model_fields)
            yield from _sections(below, (*place, name))
