"""Functions of CFN templates that work on values alone. See function.py for what one is."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from engine.errors import nearest
from engine.hot.expression import Call
from engine.hot.function import Function, Wrong, listed
from engine.hot.json_text import read_json
from engine.hot.replacing import price
from engine.hot.text_functions import as_text, join_texts, replace_words
from engine.words import Json

#: What is said of a value that may be secret.
KINDS: Mapping[type, str] = {
    bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list",
    dict: "a map", type(None): "null",
}  # fmt: skip

# -- choosing -------------------------------------------------------------------------------------


def _select(args: list[Json]) -> Json:
    """An item of a list or map, or of one in JSON text; "" when there is none such."""
    index, given = args
    if given in (None, ""):
        return ""
    collection = _from_json(given) if isinstance(given, str) else given
    if isinstance(collection, dict):
        if not isinstance(index, str):
            raise Wrong('Index to "Fn::Select" must be a string')
        return collection.get(index, "")
    if isinstance(collection, list):
        return _item(collection, index)
    raise Wrong(f'"Fn::Select" takes a list or a map, not {KINDS[type(collection)]}')


def _from_json(text: str) -> Json:
    try:
        return read_json(text)
    except ValueError as error:
        raise Wrong(f'"Fn::Select" takes a list or a map; the text is no JSON: {error}') from None


def _item(items: list[Json], index: Json) -> Json:
    try:
        return items[int(index)]
    except IndexError:
        return ""
    except (TypeError, ValueError, OverflowError):
        raise Wrong('Index to "Fn::Select" must be an integer') from None


def find_in_map(
    mappings: Mapping[str, Json], keys: Sequence[Json], *, hidden: bool = False
) -> Json:
    """A value of the ``Mappings`` section, as it is written there. Raises Wrong.

    hidden: keys may be secret, and are not told.
    """
    place, found = "Mappings", mappings
    for key in keys:
        if not _has(found, key):
            if hidden:
                raise Wrong("Mappings has nothing under these keys")
            near = nearest(key, [*found]) if isinstance(found, dict) and type(key) is str else ""
            raise Wrong(f"{place} has no key {as_text(key)[:200]}", near)
        place, found = f"{place}.{key}", found[key]
    return found


def _has(values: Json, key: Json) -> bool:
    if isinstance(values, list):
        return type(key) is int and -len(values) <= key < len(values)
    return isinstance(values, dict) and isinstance(key, str) and key in values


SELECT = Function(_select, listed("Fn::Select", '[ "1", [ "str1", "str2"]]', 2, 2))

# -- texts ----------------------------------------------------------------------------------------


def _split(args: list[Json]) -> Json:
    delimiter, text = args
    if not isinstance(delimiter, str) or not delimiter:
        raise Wrong("Delimiter for Fn::Split must be a text that is not empty")
    if not isinstance(text, str):
        raise Wrong(f"String to split must be string; got {KINDS[type(text)]}")
    return text.split(delimiter)


def _base64(text: Json) -> Json:
    """The text itself: whoever takes such a text takes it as it is."""
    if not isinstance(text, str):
        raise Wrong('"Fn::Base64" argument must be a string')
    return text


def _replace_shape(args: Json) -> None:
    REPLACE_LIST(args)
    if isinstance(args, list) and not isinstance(args[0], dict | Call):
        raise Wrong('"Fn::Replace" parameters must be a mapping')


def _anything(args: Json) -> None:
    return None


REPLACE_LIST = listed("Fn::Replace", '[ {"$var1": "foo"}, "$var1 is text"]', 2, 2)
JOIN = Function(
    lambda args: join_texts("Fn::Join", args, with_json=False),
    listed("Fn::Join", '[ " ", [ "str1", "str2"]]', 2, 2),
)
SPLIT = Function(_split, listed("Fn::Split", '[ ",", "str1,str2"]', 2, 2))
REPLACE = Function(
    lambda args: replace_words("Fn::Replace", args[1], args[0], with_json=False)[0],
    _replace_shape,
    lambda args: price(args[1], args[0]),
)
BASE64 = Function(_base64, _anything)

# -- maps and zones -------------------------------------------------------------------------------

MEMBER = re.compile(r"\.member\.([0-9]{1,18})\.(.*)")


def _member_list_to_map(args: list[Json]) -> Json:
    """``.member.0.Name=a`` and ``.member.0.Value=b`` become {a: b}."""
    key_name, value_name, members = args
    members = [] if members == "" else members
    if not isinstance(members, list | dict):
        raise Wrong("Member list must be a list")
    said: dict[str, str] = {}
    for member in members:
        if not isinstance(member, str):
            raise Wrong("Member list items must be strings")
        name, equals, value = member.partition("=")
        if not equals:
            raise Wrong(f'Member list items must have the form ".member.0.{key_name}=value"')
        said[name] = value
    found = [(match, value) for name, value in said.items() if (match := MEMBER.match(name))]
    found.sort(key=lambda one: int(one[0][1]))
    made: dict[str, str] = {}
    for _, group in groupby(found, key=lambda one: int(one[0][1])):
        member_of = {match[2]: value for match, value in group}
        if key_name in member_of and value_name in member_of:
            made[member_of[key_name]] = member_of[value_name]
    return made


def _member_shape(args: Json) -> None:
    MEMBER_LIST(args)
    for index, what in ((0, "Key"), (1, "Value")):
        if isinstance(args, list) and not isinstance(args[index], str | Call):
            raise Wrong(f"Fn::MemberListToMap {what} Name must be a string")


MEMBER_LIST = listed(
    "Fn::MemberListToMap",
    '[ "Name", "Value", [ ".member.0.Name=key", ".member.0.Value=door"]]',
    3,
    3,
)
MEMBER_LIST_TO_MAP = Function(_member_list_to_map, _member_shape)

#: The zone that every cloud has. No cloud is asked.
ZONES = ("nova",)
GET_AZS = Function(lambda region: list(ZONES), _anything)
