"""From text to a document: JSON first, then YAML as Heat templates are read.

Called by the API for templates and environments. Everything that can be wrong with the text itself
(syntax, size, depth, aliases, doubled keys, values JSON cannot say) ends here as `Invalid`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import orjson
import yaml

from engine.errors import Finding, Invalid
from engine.hot.collector import held_back
from engine.hot.integers import can_be_kept
from engine.hot.yaml_loader import TooDeep, Twin, find_twin, load
from engine.words import Json


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document may cost. Sizes are bytes of UTF-8; nodes count after alias expansion."""

    max_bytes: int = 524_288
    max_depth: int = 64
    max_nodes: int = 200_000
    max_aliases: int = 10_000

    @property
    def max_text(self) -> int:
        """Characters of all texts and keys, after alias expansion."""
        return 16 * self.max_bytes


DEFAULT_LIMITS = Limits()


def read_document(text: str, what: str, limits: Limits = DEFAULT_LIMITS) -> dict[str, Json]:
    """Parse a template or environment. ``what`` names it in messages ("template").

    Raises Invalid, always with one finding.
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > limits.max_bytes:
        raise _refused(
            f"The {what} has {size} bytes, {limits.max_bytes} are allowed.", "RequestLimitExceeded"
        )
    with held_back():
        return check_document(_parse(text, what, limits), what, limits, aliases="*" in text)


def check_document(
    value: Json, what: str, limits: Limits = DEFAULT_LIMITS, *, aliases: bool = False
) -> dict[str, Json]:
    """Check a document that is already parsed: a map of JSON values within the limits.

    aliases: one text may be there many times. Raises Invalid. Costs about a microsecond for each
    resource.
    """
    if type(value) is not dict:
        raise _refused(f"The {what} is not a JSON object or YAML mapping.")
    _walk(value, what, limits)
    if aliases:
        _refuse_much_text(value, what, limits)
    try:
        raw = orjson.dumps(value)
    except (TypeError, ValueError):
        raise Invalid([_unsayable(value, what, "")]) from None
    if b"\\u0000" in raw and (found := _find(value, "", lambda text: "\0" in text)) is not None:
        raise Invalid([Finding(found, "Text with a NUL character cannot be stored.")])
    return value


def _parse(text: str, what: str, limits: Limits) -> Json:
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(
                text, object_pairs_hook=_unique_pairs, parse_constant=_refuse_constant
            )
        except Twin as twin:
            raise _doubled(text, what, twin) from None
        except _Constant as constant:
            raise _refused(f"The {what} has the value {constant}, which JSON cannot say.") from None
        except RecursionError:
            raise _too_deep(what, limits) from None
        except ValueError:
            pass  # it may still be YAML in braces
    return _parse_yaml(text, what, limits)


def _parse_yaml(text: str, what: str, limits: Limits) -> Json:
    try:
        return load(text, limits.max_depth, limits.max_aliases)
    except Twin as twin:
        raise _doubled(text, what, twin) from None
    except TooDeep:
        raise _too_deep(what, limits) from None
    except yaml.MarkedYAMLError as error:
        raise _refused(f"Error parsing {what}: {_described(error)}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        said = " ".join(str(error).split())
        raise _refused(f"Error parsing {what}: {said}") from None


def _described(error: yaml.MarkedYAMLError) -> str:
    said = " ".join(part for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    return f"{said} in line {mark.line + 1}, column {mark.column + 1}" if mark else said


class _Constant(Exception):
    """NaN or an infinity in JSON text."""


def _refuse_constant(name: str) -> Json:
    raise _Constant(name)


def _unique_pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Twin(key)
            seen.add(key)
    return found


def _doubled(text: str, what: str, twin: Twin) -> Invalid:
    place = twin.key
    where = ""
    if (found := find_twin(text, twin.key)) is not None:
        place, line, first = found
        where = f" in line {line}, first in line {first}"
    return Invalid(
        [
            Finding(
                place,
                f"The key {json.dumps(twin.key)} is given twice in the {what}{where}.",
                "Keep one of the two.",
            )
        ]
    )


def _walk(top: dict[str, Json], what: str, limits: Limits) -> None:
    """Level by level, so that neither recursion nor a bomb of aliases can hurt."""
    level: list[Json] = [top]
    depth = nodes = 0
    while level:
        depth += 1
        if depth > limits.max_depth:
            raise _too_deep(what, limits)
        below: list[Json] = []
        for container in level:
            nodes += len(container)
            for item in container.values() if type(container) is dict else container:
                kind = type(item)
                if kind is dict or kind is list:
                    below.append(item)
                elif kind is float and not isfinite(item):
                    raise _refused(f"The {what} has the value {item}, which JSON cannot say.")
            if nodes > limits.max_nodes:
                raise _refused(
                    f"The {what} has more than {limits.max_nodes} values, counting each alias.",
                    "RequestLimitExceeded",
                )
        level = below


def _refuse_much_text(top: Json, what: str, limits: Limits) -> None:
    """A text that is named ten thousand times must not become ten thousand texts."""
    left, waiting = limits.max_text, [top]
    while waiting:
        one = waiting.pop()
        if type(one) is str:
            left -= len(one)
            if left < 0:
                raise _refused(
                    f"The {what} has more than {limits.max_text} characters, counting each alias.",
                    "RequestLimitExceeded",
                )
        elif type(one) is dict:
            waiting += one
            waiting += one.values()
        elif type(one) is list:
            waiting += one


def _unsayable(value: Json, what: str, place: str) -> Finding:
    """Find why orjson would not write it: a key that is no text, an odd type or a huge number."""
    return _search(value, place) or Finding("", f"The {what} holds a value JSON cannot say.")


def _search(value: Json, place: str) -> Finding | None:
    if type(value) is dict:
        for key, item in value.items():
            if not isinstance(key, str):
                said = json.dumps(key) if key is None or isinstance(key, bool) else str(key)
                return Finding(place, f"The key {said} is not text.", f'Write it as "{said}".')
            if (found := _search(item, f"{place}.{key}" if place else key)) is not None:
                return found
            if not _encodable(key):
                return Finding(place, "A key holds half a character (a lone surrogate).")
        return None
    if type(value) is list:
        each = (_search(item, f"{place}[{index}]") for index, item in enumerate(value))
        return next((found for found in each if found is not None), None)
    return _odd_scalar(value, place)


def _odd_scalar(value: Json, place: str) -> Finding | None:
    if isinstance(value, bool | float) or value is None:
        return None
    if isinstance(value, int):
        fits = can_be_kept(value)
        return None if fits else Finding(place, "The number is too large.", "Write it as text.")
    if isinstance(value, str):
        good = _encodable(value)
        return None if good else Finding(place, "Half a character (a lone surrogate) in a text.")
    return Finding(place, f"A value of the kind {type(value).__name__} cannot be used here.")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _find(value: Json, place: str, wanted: Callable[[str], bool]) -> str | None:
    """Return the place of the first text (or key) that ``wanted`` says yes to."""
    if isinstance(value, str):
        return place if wanted(value) else None
    if isinstance(value, dict):
        for key, item in value.items():
            here = f"{place}.{key}" if place else key
            if wanted(key) or (found := _find(item, here, wanted)) is not None:
                return here if wanted(key) else found
    if isinstance(value, list):
        for index, item in enumerate(value):
            if (found := _find(item, f"{place}[{index}]", wanted)) is not None:
                return found
    return None


def _too_deep(what: str, limits: Limits) -> Invalid:
    return _refused(
        f"The {what} is nested deeper than {limits.max_depth} levels, or contains itself.",
        "RequestLimitExceeded",
    )


def _refused(reason: str, code: str = "Invalid") -> Invalid:
    return Invalid([Finding("", reason, "", code)])
