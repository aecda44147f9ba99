"""Replacements for functions of the yaql library.

They have the same meaning, a bounded cost, and the same result each time. Each has the parameters
of the function it replaces, and `budget` if it counts its cost.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from string import ascii_letters, ascii_lowercase, ascii_uppercase
from string import digits as all_digits
from string import hexdigits as all_hexdigits
from string import octdigits as all_octdigits
from string import printable as all_printable
from string import punctuation as all_punctuation
from string import whitespace as all_whitespace
from typing import Any

from dateutil import parser
from yaql.standard_library import date_time, math, regex, strings

from engine.hot.functions.cost_budget import CostBudget
from engine.hot.functions.function import FunctionError, check_text_length
from engine.hot.patterns.pattern import InvalidPattern, Pattern, read_pattern

#: Characters compared in one step of a search from the right.
CHARACTERS_PER_STEP = 50_000
#: Maximum size of a number that a function produces, in bits.
MAX_NUMBER_BITS = 1_024

# -- non-deterministic functions -------------------------------------------------------------------

USE_PARAMETER = "It returns a different value each time; pass the value as a parameter."


def _refuse_function(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **named: Any) -> Any:
        raise FunctionError(
            f'The yaql function "{name}" cannot be used in a template.', USE_PARAMETER
        )

    return refuse


def _parse_datetime(text: str, form: str | None = None) -> datetime:
    if form:
        return _with_zone(datetime.strptime(text, form))  # noqa: DTZ007
    first, second = (_parse_with_default(text, one) for one in DEFAULTS)
    if first != second:
        raise FunctionError(
            "A date for yaql needs a year, a month and a day.", "Write it as 2026-01-31."
        )
    return _with_zone(first)


#: The parser takes missing fields from a default date; a text that parses differently with two
#: defaults is incomplete.
DEFAULTS = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2001, 2, 2, tzinfo=UTC))


def _parse_with_default(text: str, default: datetime) -> datetime:
    found: datetime = parser.parse(text, default=default.replace(tzinfo=None), tzinfos=_zone)
    return found


def _zone(name: str | None, offset: int | None) -> tzinfo | None:
    if name is None and offset is None:
        return None
    if offset is not None:
        return timezone(timedelta(seconds=offset))
    if name in ("UTC", "GMT", "Z"):
        return UTC
    raise FunctionError(f'The time zone "{name}" is not known.', "Write it as an offset: +02:00.")


def _with_zone(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _characters(
    digits: bool = False,
    hexdigits: bool = False,
    ascii_lowercase: bool = False,
    ascii_uppercase: bool = False,
    ascii_letters: bool = False,
    letters: bool = False,
    octdigits: bool = False,
    punctuation: bool = False,
    printable: bool = False,
    lowercase: bool = False,
    uppercase: bool = False,
    whitespace: bool = False,
) -> tuple[str, ...]:
    """Return the characters in code order; the library's order differs between processes."""
    wanted = (
        digits, hexdigits, ascii_lowercase, ascii_uppercase, ascii_letters, letters,
        octdigits, punctuation, printable, lowercase, uppercase, whitespace,
    )  # fmt: skip
    found = "".join(kind for one, kind in zip(wanted, CHARACTERS, strict=True) if one)
    return tuple(sorted(set(found)))


CHARACTERS = (
    all_digits, all_hexdigits, ascii_lowercase, ascii_uppercase, ascii_letters, ascii_letters,
    all_octdigits, all_punctuation, all_printable, ascii_lowercase, ascii_uppercase,
    all_whitespace,
)  # fmt: skip

WITHOUT_A_NAME = re.compile(r"<[^<>]* at 0x[0-9a-f]+>|<iterator>")


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower() if value is not None else "null"
    text = str(value)
    if not isinstance(value, str) and WITHOUT_A_NAME.search(text):
        raise FunctionError(
            "yaql cannot write this value as a text.", "Make a list of it: .toList()"
        )
    return text


# -- numbers --------------------------------------------------------------------------------------


def _check_bits(bits: float) -> None:
    if bits > MAX_NUMBER_BITS:
        raise FunctionError(
            f"yaql would make a number of more than {MAX_NUMBER_BITS} bits.",
            "Calculate with smaller numbers.",
        )


def _power(a: int | float, b: int | float, c: int | None = None) -> Any:
    if c is None and isinstance(a, int) and isinstance(b, int) and b > 0:
        _check_bits(abs(a).bit_length() * b if abs(a) > 1 else 1)
    return pow(a, b, c)  # type: ignore[arg-type]


def _shift_left(value: int, bits_number: int) -> int:
    _check_bits(value.bit_length() + bits_number)
    return value << bits_number


def _round(number: int | float, ndigits: int = 0) -> int | float:
    return round(number, max(ndigits, -MAX_NUMBER_BITS))


# -- texts ----------------------------------------------------------------------------------------


def _replace(string: str, old: str, new: str, count: int = -1) -> str:
    found = string.count(old)
    check_text_length(len(string) + (found if count < 0 else min(found, count)) * len(new))
    return string.replace(old, new, count)


def _replace_with_map(
    string: str, str_func: Callable[[Any], str], replacements: Mapping[Any, Any], count: int = -1
) -> str:
    for key, value in replacements.items():
        string = _replace(string, str_func(key), str_func(value), count)
    return string


def _right_split(
    string: str, separator: str | None = None, max_splits: int = -1, *, budget: CostBudget
) -> list[str]:
    budget.spend_steps(len(string) * len(separator or "") // CHARACTERS_PER_STEP)
    return string.rsplit(separator, max_splits)


def _last_index(string: str, sub: str, start: int = 0, *, budget: CostBudget) -> int:
    budget.spend_steps(len(string) * len(sub) // CHARACTERS_PER_STEP)
    return string.rfind(sub, start)


def _last_index_within(
    string: str, sub: str, start: int, length: int, *, budget: CostBudget
) -> int:
    if start < 0:
        start += len(string)
    if length < 0:
        length = len(string) - start
    budget.spend_steps(len(string) * len(sub) // CHARACTERS_PER_STEP)
    return string.rfind(sub, start, start + length)


# -- regular expressions --------------------------------------------------------------------------


def _pattern(text: str, budget: CostBudget, flags: int = 0) -> Pattern:
    try:
        return read_pattern(text, budget, flags)
    except InvalidPattern as bad:
        raise FunctionError(str(bad), "Correct the regular expression.") from None


def _regex(
    pattern: str,
    ignore_case: bool = False,
    multi_line: bool = False,
    dot_all: bool = False,
    *,
    budget: CostBudget,
) -> Pattern:
    flags = (re.IGNORECASE if ignore_case else 0) | (re.MULTILINE if multi_line else 0)
    return _pattern(pattern, budget, flags | (re.DOTALL if dot_all else 0))


def _matches(regexp: Pattern, string: str, *, budget: CostBudget) -> bool:
    return regexp.search(string, budget) is not None


def _text_matches(string: str, regexp: Pattern | str, *, budget: CostBudget) -> bool:
    pattern = regexp if isinstance(regexp, Pattern) else _pattern(regexp, budget)
    return pattern.search(string, budget) is not None


def _text_does_not_match(string: str, regexp: Pattern | str, *, budget: CostBudget) -> bool:
    return not _text_matches(string, regexp, budget=budget)


def _match_context(context: Any, regexp: Pattern, match: Any) -> Any:
    """Return a context with the groups of a match: $ or $1 for the whole match, $2, $name."""
    seen = context.create_child_context()
    names = {number: name for name, number in regexp.compiled.groupindex.items()}
    for number in range(regexp.compiled.groups + 1):
        group = {"value": match.group(number), "start": match.start(number)}
        group["end"] = match.end(number)
        seen[f"${number + 1}"] = group
        if number in names:
            seen[f"${names[number]}"] = group
    return seen


def _search(
    context: Any,
    regexp: Pattern,
    string: str,
    selector: Callable[[Any], Any] | None = None,
    *,
    budget: CostBudget,
) -> Any:
    match = regexp.search(string, budget)
    if match is None:
        return None
    return match.group() if selector is None else selector(_match_context(context, regexp, match))


def _search_all(
    context: Any,
    regexp: Pattern,
    string: str,
    selector: Callable[[Any], Any] | None = None,
    *,
    budget: CostBudget,
) -> Iterator[Any]:
    for match in regexp.find_all(string, budget):
        yield (
            match.group() if selector is None else selector(_match_context(context, regexp, match))
        )


def _split(regexp: Pattern, string: str, max_split: int = 0, *, budget: CostBudget) -> list[Any]:
    parts, last = [], 0
    for number, match in enumerate(regexp.find_all(string, budget)):
        if max_split < 0 or 0 < max_split <= number:
            break
        parts += [string[last : match.start()], *match.groups()]
        last = match.end()
    return [*parts, string[last:]]


def _split_text(
    string: str, regexp: Pattern, max_split: int = 0, *, budget: CostBudget
) -> list[Any]:
    return _split(regexp, string, max_split, budget=budget)


def _substitute(
    regexp: Pattern, string: str, text_for: Callable[[Any], str], count: int, budget: CostBudget
) -> str:
    parts, last, size = [], 0, len(string)
    for number, match in enumerate(regexp.find_all(string, budget)):
        if count < 0 or 0 < count <= number:
            break
        text = text_for(match)
        size += len(text)
        check_text_length(size)
        parts += [string[last : match.start()], text]
        last = match.end()
    return "".join([*parts, string[last:]])


def _sub(regexp: Pattern, string: str, repl: str, count: int = 0, *, budget: CostBudget) -> str:
    return _substitute(regexp, string, lambda match: str(match.expand(repl)), count, budget)


def _sub_text(
    string: str, regexp: Pattern, repl: str, count: int = 0, *, budget: CostBudget
) -> str:
    return _sub(regexp, string, repl, count, budget=budget)


def _sub_by(
    context: Any,
    regexp: Pattern,
    string: str,
    repl: Callable[[Any], str],
    count: int = 0,
    *,
    budget: CostBudget,
) -> str:
    return _substitute(
        regexp,
        string,
        lambda match: _require_text(repl(_match_context(context, regexp, match))),
        count,
        budget,
    )


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise FunctionError(
            '"replaceBy" of yaql substitutes text only.', "Turn the value into text with str()."
        )
    return value


def _sub_by_text(
    context: Any,
    string: str,
    regexp: Pattern,
    repl: Callable[[Any], str],
    count: int = 0,
    *,
    budget: CostBudget,
) -> str:
    return _sub_by(context, regexp, string, repl, count, budget=budget)


# -- replacements ----------------------------------------------------------------------------------

#: Functions of the library and their replacements.
REPLACEMENTS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    math.random_: _refuse_function("random"),
    math.random__: _refuse_function("random"),
    date_time.now: _refuse_function("now"),
    date_time.localtz: _refuse_function("localtz"),
    date_time.datetime_from_string: _parse_datetime,
    math.pow_: _power,
    math.shift_bits_left: _shift_left,
    math.round_: _round,
    strings.characters: _characters,
    strings.str_: _text,
    strings.replace: _replace,
    strings.replace_with_dict: _replace_with_map,
    strings.right_split: _right_split,
    strings.last_index_of: _last_index,
    strings.last_index_of_: _last_index_within,
    regex.regex: _regex,
    regex.matches: _matches,
    regex.matches_: _text_matches,
    regex.matches_operator_regex: _text_matches,
    regex.matches_operator_string: _text_matches,
    regex.not_matches_operator_regex: _text_does_not_match,
    regex.not_matches_operator_string: _text_does_not_match,
    regex.search: _search,
    regex.search_all: _search_all,
    regex.split: _split,
    regex.split_string: _split_text,
    regex.replace: _sub,
    regex.replace_string: _sub_text,
    regex.replace_by: _sub_by,
    regex.replace_by_string: _sub_by_text,
    regex.is_regex: lambda value: isinstance(value, Pattern),
}

#: Names of functions that are refused.
NON_DETERMINISTIC = frozenset({"random", "now", "localtz"})
