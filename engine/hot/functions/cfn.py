"""Functions of CFN templates that work on values alone. function.py describes the interface."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from engine.errors import beginning_of, one_of, public
from engine.hot.expressions.expression import FunctionCall
from engine.hot.functions import placeholders
from engine.hot.functions.function import Function, FunctionError, list_shape
from engine.hot.functions.text import join_texts, replace_words, replacement_cost, to_json_text
from engine.hot.syntax.json_text import parse_json, why_invalid
from engine.words import Json

#: Names of JSON types for messages; they describe values that may be secret.
KINDS: Mapping[type, str] = {
    bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list",
    dict: "a map", type(None): "null",
}  # fmt: skip

# -- selection -------------------------------------------------------------------------------------


def _select(args: list[Json]) -> Json:
    """Fn::Select: an item of a list or map, or of one given as JSON text; "" if it is missing."""
    index, given = args
    if given in (None, ""):
        return ""
    collection = _from_json(given) if isinstance(given, str) else given
    if isinstance(collection, dict):
        if not isinstance(index, str):
            raise FunctionError(
                'Index to "Fn::Select" must be a string', public("Write a key of the map.")
            )
        return collection.get(index, "")
    if isinstance(collection, list):
        return _item(collection, index)
    raise FunctionError(
        f'"Fn::Select" takes a list or a map, not {KINDS[type(collection)]}',
        public("Write Fn::Select: [INDEX, [ITEM, ...]]."),
    )


def _from_json(text: str) -> Json:
    try:
        return parse_json(text)
    except ValueError as error:
        why = why_invalid(text)
        raise FunctionError(
            f'"Fn::Select" takes a list or a map; the string is not valid JSON: {error}',
            public("Write a list or a map, or correct the JSON."),
            heat_reason=why and f'"Fn::Select": {why}',
        ) from None


def _item(items: list[Json], index: Json) -> Json:
    try:
        return items[int(index)]
    except IndexError:
        return ""
    except (TypeError, ValueError, OverflowError):
        raise FunctionError(
            'Index to "Fn::Select" must be an integer',
            public("Write the number of an item, from 0."),
        ) from None


def find_in_map(
    mappings: Mapping[str, Json], keys: Sequence[Json], *, hidden: bool = False
) -> Json:
    """Return a value of the `Mappings` section, unevaluated. Raises FunctionError.

    hidden: the keys may be secret and must not occur in messages.
    """
    place, found = "Mappings", mappings
    for key in keys:
        if not _has(found, key):
            if hidden:
                raise FunctionError(
                    "Mappings has no value for these keys", public("Use keys that Mappings has.")
                )
            known = [str(one) for one in found] if isinstance(found, dict) else []
            near = one_of(to_json_text(key).strip('"'), known, "Keys")
            raise FunctionError(f"{place} has no key {beginning_of(to_json_text(key))}", near)
        place, found = f"{place}.{key}", found[key]
    return found


def _has(values: Json, key: Json) -> bool:
    if isinstance(values, list):
        return type(key) is int and -len(values) <= key < len(values)
    return isinstance(values, dict) and isinstance(key, str) and key in values


def _select_shape(args: Json) -> None:
    if not isinstance(args, FunctionCall) and not (isinstance(args, list) and len(args) == 2):
        reason = 'Arguments to "Fn::Select" must be of the form [index, collection]'
        raise FunctionError(public(reason), public("Write Fn::Select: [INDEX, [ITEM, ...]]."))


SELECT = Function(_select, _select_shape)

# -- texts ----------------------------------------------------------------------------------------


def _split(args: list[Json]) -> Json:
    delimiter, text = args
    if not isinstance(delimiter, str) or not delimiter:
        raise FunctionError(
            "Delimiter for Fn::Split must be a text that is not empty",
            public("Write Fn::Split: [DELIMITER, TEXT]."),
        )
    if not isinstance(text, str):
        raise FunctionError(
            f"The text to split must be a string, not {KINDS[type(text)]}.",
            public("Write Fn::Split: [DELIMITER, TEXT]."),
            heat_reason=f"String to split must be string; got {type(text)}",
        )
    return text.split(delimiter)


def _base64(text: Json) -> Json:
    """Return the text unchanged, as Heat does: consumers of such text do not decode it."""
    if not isinstance(text, str):
        raise FunctionError(
            '"Fn::Base64" argument must be a string', public("Put the value in quotes.")
        )
    return text


def _replace_shape(args: Json) -> None:
    if not isinstance(args, FunctionCall) and not (isinstance(args, list) and len(args) == 2):
        form = '{"Fn::Replace": [ {"$var1": "foo", "%var2%": "bar"}, "$var1 is %var2%"]}'
        raise FunctionError(
            public(f'Incorrect arguments to "Fn::Replace" should be: {form}'),
            public("Write Fn::Replace: [{TEXT: REPLACEMENT}, TEMPLATE]."),
        )
    if isinstance(args, list) and not isinstance(args[0], dict | FunctionCall):
        raise FunctionError(
            '"Fn::Replace" parameters must be a mapping',
            public("Write Fn::Replace: [{TEXT: REPLACEMENT}, TEMPLATE]."),
        )


def _anything(args: Json) -> None:
    return None


JOIN = Function(
    lambda args: join_texts("Fn::Join", args, with_json=False),
    list_shape("Fn::Join", '[ " ", [ "str1", "str2"]]', 2, 2),
    with_placeholders=placeholders.join_arguments,
)
# The brackets are those of Heat's sentence.
SPLIT = Function(_split, list_shape("Fn::Split", '[ ",", "str1,str2"]]', 2, 2))
REPLACE = Function(
    lambda args: replace_words("Fn::Replace", args[1], args[0], with_json=False)[0],
    _replace_shape,
    lambda args: replacement_cost(args[1], args[0]),
)
BASE64 = Function(_base64, _anything)

# -- maps and zones -------------------------------------------------------------------------------

MEMBER = re.compile(r"\.member\.([0-9]{1,18})\.(.*)")


def _member_list_to_map(args: list[Json]) -> Json:
    """Convert `.member.0.Name=a` and `.member.0.Value=b` to {a: b}."""
    key_name, value_name, members = args
    members = [] if members == "" else members
    if not isinstance(members, list | dict):
        raise FunctionError(
            "Member list must be a list",
            public("Write Fn::MemberListToMap: [KEY_NAME, VALUE_NAME, [ITEM, ...]]."),
        )
    values: dict[str, str] = {}
    for member in members:
        if not isinstance(member, str):
            raise FunctionError(
                "Member list items must be strings", public("Put each item in quotes.")
            )
        name, equals, value = member.partition("=")
        if not equals:
            raise FunctionError(
                f'Member list items must have the form ".member.0.{key_name}=value"',
                public("Write the name, = and the value."),
            )
        values[name] = value
    found = [(match, value) for name, value in values.items() if (match := MEMBER.match(name))]
    found.sort(key=lambda one: int(one[0][1]))
    made: dict[str, str] = {}
    for _, group in groupby(found, key=lambda one: int(one[0][1])):
        member_of = {match[2]: value for match, value in group}
        if key_name in member_of and value_name in member_of:
            made[member_of[key_name]] = member_of[value_name]
    return made


#: Heat's message about another number of arguments.
MEMBER_SYNTAX = """Wrong Arguments try: "
            {'Fn::MemberListToMap': ['Name', 'Value',
                                     ['.member.0.Name=key',
                                      '.member.0.Value=door']]}
            \""""


def _member_shape(args: Json) -> None:
    try:
        MEMBER_LIST(args)
    except FunctionError as wrong:
        wrong.heat_reason = MEMBER_SYNTAX if isinstance(args, list) else ""
        raise
    for index, what in ((0, "Key"), (1, "Value")):
        if isinstance(args, list) and not isinstance(args[index], str | FunctionCall):
            raise FunctionError(
                f"Fn::MemberListToMap {what} Name must be a string",
                public("Write Fn::MemberListToMap: [KEY_NAME, VALUE_NAME, [ITEM, ...]]."),
            )


MEMBER_LIST = list_shape(
    "Fn::MemberListToMap",
    '[ "Name", "Value", [ ".member.0.Name=key", ".member.0.Value=door"]]',
    3,
    3,
)
MEMBER_LIST_TO_MAP = Function(_member_list_to_map, _member_shape)

#: The default availability zone. Headgate does not ask a cloud for others.
ZONES = ("nova",)
GET_AZS = Function(lambda region: list(ZONES), _anything)
