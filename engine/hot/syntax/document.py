"""Text to documents: JSON first, then YAML as Heat reads it.

Used for templates and environments. All faults of the text itself (syntax, size, depth, aliases,
duplicate keys, values that JSON cannot represent) are raised here as `Invalid`.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Final

import orjson
import yaml

from engine.errors import ENVIRONMENT, TEMPLATE, Finding, Findings, Invalid
from engine.hot.gc_pause import pause_gc
from engine.hot.syntax.json_text import is_storable_integer
from engine.hot.syntax.positions import IrregularKey, find_irregular_keys
from engine.hot.syntax.yaml_errors import explain_character, explain_syntax_error
from engine.hot.syntax.yaml_reader import NestedTooDeep, load_yaml
from engine.words import Json

#: Values that a document may have for each resource in the stack's quota, and the minimum for every
#: document.
NODES_PER_RESOURCE = 20
MIN_NODE_LIMIT = 200_000


def max_nodes_for(resources: int) -> int:
    """Return the limit of values of a document, given the quota of resources per stack."""
    return max(MIN_NODE_LIMIT, NODES_PER_RESOURCE * resources)


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Limits of one document. Sizes are bytes of UTF-8; nodes are counted after alias expansion."""

    max_bytes: int = 524_288
    max_depth: int = 64
    max_nodes: int = MIN_NODE_LIMIT
    max_aliases: int = 10_000

    @property
    def max_text(self) -> int:
        """Maximum length of all strings and keys, in characters, after alias expansion."""
        return 16 * self.max_bytes


DEFAULT_LIMITS = DocumentLimits()


def read_document(
    text: str,
    what: str,
    limits: DocumentLimits = DEFAULT_LIMITS,
    warnings: Findings | None = None,
) -> dict[str, Json]:
    """Parse a template or environment. what: its name in messages, such as "template".

    warnings: get one for each key that is given twice, of which the last one counts, and for each
    that is not text; None: such documents are refused. Raises Invalid with exactly one finding.
    """
    check_size(text, what, limits)
    with pause_gc():
        value, irregular, is_json = _parse(text, what, limits)
        if value is None:
            value = _empty_document(what)
        if type(value) is not dict:
            raise Invalid([replace(_no_map(what), line=1, column=1)])
        document = check_document(value, what, limits, aliases="*" in text)
    if irregular:
        found = [_describe_key(one, what) for one in find_irregular_keys(text, is_json=is_json)]
        found = found or [Finding("", f"A key is given twice in the {what}.", "Keep one.")]
        if warnings is None:
            raise Invalid(found[:1])
        warnings.warn_all(found)
    return document


def check_size(text: str | bytes, what: str, limits: DocumentLimits) -> None:
    """Raise Invalid if the text has more bytes in UTF-8 than a document may have."""
    if isinstance(text, str) and not text.isascii():
        text = text.encode("utf-8", "surrogatepass")
    size = len(text)
    if size > limits.max_bytes:
        raise _invalid(
            f"The {what} has {size} bytes; the limit is {limits.max_bytes}.",
            "RequestLimitExceeded",
            "The operator sets it in [quotas] template_bytes.",
        )


def check_document(
    value: Json, what: str, limits: DocumentLimits = DEFAULT_LIMITS, *, aliases: bool = False
) -> dict[str, Json]:
    """Check a parsed document: a map of JSON values within the limits.

    aliases: the document may contain one string several times. Raises Invalid. Costs about a
    microsecond for each resource.
    """
    if type(value) is not dict:
        raise Invalid([_no_map(what)])
    _walk(value, what, limits)
    if aliases:
        _check_text_total(value, what, limits)
    try:
        raw = orjson.dumps(value)
    except (TypeError, ValueError):
        raise Invalid([_find_unstorable(value, what, "")]) from None
    if b"\\u0000" in raw and (found := _find(value, "", lambda text: "\0" in text)) is not None:
        raise Invalid(
            [
                Finding(
                    found,
                    "Text with a NUL character cannot be stored.",
                    "Remove the character, or encode the text in base64.",
                )
            ]
        )
    return value


def _empty_document(what: str) -> dict[str, Json]:
    """Return an environment for a text without content, such as one of comments. As in Heat, a
    template has at least a version: raises Invalid.
    """
    if what.split(" ")[0] != TEMPLATE:
        return {}
    reason = "Template format version not found."
    remedy = "Write a template; its first line is the version, such as heat_template_version:"
    raise Invalid([Finding("", reason, f"{remedy} 2021-04-16.", "Invalid", line=1, column=1)])


def _no_map(what: str) -> Finding:
    reason = f"The {what} is not a JSON object or YAML mapping."
    if what == ENVIRONMENT:
        reason = "The environment is not a valid YAML mapping data type."
    remedy = f"Write its sections as keys, such as {SECTIONS.get(what, 'resources')}."
    return Finding("", reason, remedy, "Invalid")


SECTIONS: Final[Mapping[str, str]] = {TEMPLATE: "resources", ENVIRONMENT: "parameters"}


def _parse(text: str, what: str, limits: DocumentLimits) -> tuple[Json, bool, bool]:
    """Return the content, whether a key is given twice or is not text, and whether it is JSON."""
    if text.lstrip()[:1] in ("{", "["):
        pairs = _Pairs()
        try:
            value = json.loads(text, object_pairs_hook=pairs, parse_constant=_refuse_constant)
        except _Constant as constant:
            raise _invalid(
                f"The {what} has the value {constant}, which JSON cannot represent.",
                "Invalid",
                FINITE,
            ) from None
        except RecursionError:
            raise _too_deep(what, limits) from None
        except ValueError:
            pass  # it may be YAML flow style
        else:
            return value, pairs.irregular, True
    return *_parse_yaml(text, what, limits), False


def _parse_yaml(text: str, what: str, limits: DocumentLimits) -> tuple[Json, bool]:
    try:
        return load_yaml(text, limits.max_depth, limits.max_aliases)
    except NestedTooDeep:
        raise _too_deep(what, limits) from None
    except yaml.MarkedYAMLError as error:
        raise Invalid([explain_syntax_error(error, text, what)]) from None
    except UnicodeEncodeError:
        raise _invalid(
            f"The {what} contains half a character (a lone surrogate).", "Invalid", WHOLE
        ) from None
    except yaml.reader.ReaderError as error:
        raise Invalid([explain_character(chr(error.character), text, what)]) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise _invalid(f"Error parsing {what}: {reason}", "Invalid", CORRECT) from None


FINITE: Final = "Write a finite number, or text in quotes."
WHOLE: Final = "Remove the character, or write it whole."
CORRECT: Final = "Correct the syntax, or write the value in quotes."


class _Constant(Exception):
    """JSON text contains NaN or an infinity."""


def _refuse_constant(name: str) -> Json:
    raise _Constant(name)


class _Pairs:
    """Builds the maps of a JSON text. irregular: a key is given twice."""

    __slots__ = ("irregular",)

    def __init__(self) -> None:
        self.irregular = False

    def __call__(self, pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(pairs)
        self.irregular = self.irregular or len(found) != len(pairs)
        return found


def _describe_key(key: IrregularKey, what: str) -> Finding:
    code, remedy = "KeyNotText", f"Write it as {json.dumps(key.key)}."
    reason = f"The key {key.written} is not text"
    if key.first_line:
        code, remedy = "DuplicateKey", "Keep one of the two. The last one is used."
        lines = f"in line {key.line}, first in line {key.first_line}"
        reason = f"The key {json.dumps(key.key)} is given twice in the {what} {lines}."
    # Which parameters are hidden is not known here.
    secret = what.startswith("environment") and _PARAMETER_VALUE.match(key.place) is not None
    return Finding(key.place, reason, remedy, code, line=key.line, column=key.column, secret=secret)


_PARAMETER_VALUE: Final = re.compile(r"(parameters|parameter_defaults)\b")


def _walk(top: dict[str, Json], what: str, limits: DocumentLimits) -> None:
    """Check depth and number of values level by level: no recursion, and alias bombs stop early."""
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
                    raise _invalid(
                        f"The {what} has the value {item}, which JSON cannot represent.",
                        "Invalid",
                        FINITE,
                    )
            if nodes > limits.max_nodes:
                raise _invalid(
                    f"The {what} has more than {limits.max_nodes} values, counting each alias.",
                    "RequestLimitExceeded",
                    f"The limit is {NODES_PER_RESOURCE} for each resource that a stack may have."
                    " The operator sets the number of resources in [quotas] resources_per_stack.",
                )
        level = below


def _check_text_total(top: Json, what: str, limits: DocumentLimits) -> None:
    """Limit the length of all strings, counting each alias of a string."""
    left, waiting = limits.max_text, [top]
    while waiting:
        one = waiting.pop()
        if type(one) is str:
            left -= len(one)
            if left < 0:
                raise _invalid(
                    f"The {what} has more than {limits.max_text} characters, counting each alias.",
                    "RequestLimitExceeded",
                    "The limit is 16 for each byte that a template may have; the operator sets"
                    " the size in [quotas] template_bytes.",
                )
        elif type(one) is dict:
            waiting += one
            waiting += one.values()
        elif type(one) is list:
            waiting += one


def _find_unstorable(value: Json, what: str, place: str) -> Finding:
    """Find the value that orjson refuses: a key that is not a string, an unknown type or a huge
    number.
    """
    return _search(value, place) or Finding(
        "",
        f"The {what} has a value that JSON cannot represent.",
        "Use strings, finite numbers, booleans, lists and maps only.",
    )


def _search(value: Json, place: str) -> Finding | None:
    if type(value) is dict:
        for key, item in value.items():
            if not isinstance(key, str):
                shown = json.dumps(key) if key is None or isinstance(key, bool) else str(key)
                return Finding(place, f"The key {shown} is not text.", f'Write it as "{shown}".')
            if (found := _search(item, f"{place}.{key}" if place else key)) is not None:
                return found
            if not _encodable(key):
                return Finding(
                    place,
                    "A key contains half a character (a lone surrogate).",
                    WHOLE,
                )
        return None
    if type(value) is list:
        each = (_search(item, f"{place}[{index}]") for index, item in enumerate(value))
        return next((found for found in each if found is not None), None)
    return _scalar_problem(value, place)


def _scalar_problem(value: Json, place: str) -> Finding | None:
    if isinstance(value, bool | float) or value is None:
        return None
    if isinstance(value, int):
        fits = is_storable_integer(value)
        return None if fits else Finding(place, "The number is too large.", "Write it as text.")
    if isinstance(value, str):
        good = _encodable(value)
        return (
            None
            if good
            else Finding(
                place,
                "The text contains half a character (a lone surrogate).",
                WHOLE,
            )
        )
    return Finding(
        place,
        f"A value of the kind {type(value).__name__} cannot be used here.",
        "Write it in quotes.",
    )


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _find(value: Json, place: str, predicate: Callable[[str], bool]) -> str | None:
    """Return the place of the first string (or key) that the predicate accepts."""
    if isinstance(value, str):
        return place if predicate(value) else None
    if isinstance(value, dict):
        for key, item in value.items():
            here = f"{place}.{key}" if place else key
            if predicate(key) or (found := _find(item, here, predicate)) is not None:
                return here if predicate(key) else found
    if isinstance(value, list):
        for index, item in enumerate(value):
            if (found := _find(item, f"{place}[{index}]", predicate)) is not None:
                return found
    return None


def _too_deep(what: str, limits: DocumentLimits) -> Invalid:
    return _invalid(
        f"The {what} is nested deeper than {limits.max_depth} levels, or contains itself.",
        "RequestLimitExceeded",
        "The operator sets it in [quotas] document_depth.",
    )


def _invalid(reason: str, code: str, remedy: str) -> Invalid:
    return Invalid([Finding("", reason, remedy, code)])
