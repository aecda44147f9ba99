"""Functions of HOT for maps, lists and URLs. function.py describes the interface."""

from collections.abc import Hashable, Mapping
from urllib.parse import quote, urlencode

from engine.errors import Quoting, public
from engine.hot.expressions.expression import FunctionCall
from engine.hot.functions import placeholders
from engine.hot.functions.function import (
    DeferredFormError,
    Function,
    FunctionError,
    InvalidCall,
    list_shape,
    quote_as_heat,
    quote_value,
)
from engine.hot.functions.text import to_json_text
from engine.words import Json

# -- maps -----------------------------------------------------------------------------------------


def _as_map(value: Json, name: str) -> dict[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        reason = f'"{name}" takes maps'
        shown = f"{repr(value)[:200]} is type {type(value)} instead of a dict"
        raise FunctionError(
            Quoting(f"{reason}, not {quote_value(value)}", reason),
            public("Write a list of maps."),
            heat_reason=f"Incorrect arguments: Items to merge must be maps. {shown}",
        )
    return value


def _map_merge(args: list[Json]) -> Json:
    merged: dict[str, Json] = {}
    for one in args:
        merged.update(_as_map(one, "map_merge"))
    return merged


def _as_replaced_map(value: Json) -> dict[str, Json]:
    if value is not None and not isinstance(value, dict):
        raise FunctionError(public(NO_MAPS), public("Write a map and a map of maps."))
    return value or {}


def _map_replace(args: list[Json]) -> Json:
    given, rules = map(_as_replaced_map, args)
    if not rules.keys() <= {"keys", "values"}:
        remedy = 'The second argument has "keys" and "values" only.'
        raise FunctionError(
            public(f'Incorrect arguments to "map_replace" should be: {REPLACED}'), public(remedy)
        )
    keys = _as_replaced_map(rules.get("keys"))
    values = _as_replaced_map(rules.get("values"))
    replaced: dict[str, Json] = {}
    for old, value in given.items():
        new = old if keys.get(old) is None else keys[old]
        if isinstance(new, int | float):
            new = to_json_text(new)
        if not isinstance(new, str):
            reason = '"map_replace" can only rename a key to text'
            raise FunctionError(
                Quoting(f"{reason}, not to {quote_value(new)}", reason),
                public("Write the new name as text."),
            )
        if new in given and new != old:
            raise FunctionError(
                f"key replacement {new} collides with a key in the input map",
                public("Choose a name that no other key has."),
            )
        if new in replaced:
            raise FunctionError(
                f"key replacement {new} collides with a key in the output map",
                public("Give each key a name of its own."),
            )
        replaced[new] = values.get(value, value) if isinstance(value, str) else value
    return replaced


REPLACE_EXAMPLE = '[ { "key1": "val1" }, {"keys": {"key1": "key2"}, "values": {"val1": "val2"}}]'
REPLACED = f'"map_replace" : {REPLACE_EXAMPLE}'
NO_MAPS = (
    f'Incorrect arguments: to "map_replace", arguments must be a list of maps. Example:  {REPLACED}'
)
MERGE_EXAMPLE = '[ { "key1": "val1" }, { "key2": "val2" } ]'
MAP_MERGE = Function(
    _map_merge,
    list_shape(
        "map_merge", '[ { "key1": "val1" }, { "key2": "val2" } ]', 0, error=DeferredFormError
    ),
    with_placeholders=placeholders.list_arguments,
)
MAP_REPLACE = Function(
    _map_replace,
    list_shape("map_replace", REPLACE_EXAMPLE, 2, 2, DeferredFormError),
    with_placeholders=placeholders.map_replace_arguments,
)

# -- lists ----------------------------------------------------------------------------------------


def to_hashable(value: Json) -> Hashable:
    """Return a hashable value that equals another exactly if the JSON values are equal."""
    if isinstance(value, dict):
        return frozenset((key, to_hashable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(to_hashable, value))
    return value  # type: ignore[no-any-return]


def _filter(args: list[Json]) -> Json:
    values, given = args
    if not given:
        return given
    if not isinstance(given, list):
        raise FunctionError(
            '"filter" only works with lists', public("Write filter: [[VALUE, ...], [ITEM, ...]].")
        )
    if not values:
        return given
    if not isinstance(values, list):
        raise FunctionError(
            '"filter" filters a list of values',
            public("Write filter: [[VALUE, ...], [ITEM, ...]]."),
        )
    unwanted = {to_hashable(value) for value in values}
    return [item for item in given if to_hashable(item) not in unwanted]


def _contains(args: list[Json]) -> Json:
    value, sequence = args
    if isinstance(sequence, str):
        if not isinstance(value, str):
            raise FunctionError(
                f'"contains" looks in a text for text only, not for {quote_value(value)}',
                public("Put the value in quotes, or search in a list."),
            )
    elif not isinstance(sequence, list):
        raise FunctionError(
            'Second argument to "contains" should be a sequence.',
            public("Write contains: [VALUE, [ITEM, ...]]."),
        )
    return value in sequence


def _concat(args: list[Json]) -> list[Json]:
    whole: list[Json] = []
    for one in args:
        if one is not None and not isinstance(one, list):
            reason = "Incorrect arguments: Items to concat must be lists."
            where = f"{quote_value(args)} contains an item that is not a list: {quote_value(one)}"
            remedy = public("Write a list of lists.")
            raise FunctionError(Quoting(f"{reason} {where}", reason), remedy)
        whole += one or []
    return whole


def _concat_unique(args: list[Json]) -> Json:
    """Concatenate lists and keep the first of equal items."""
    first: dict[Hashable, Json] = {}
    for item in _concat(args):
        first.setdefault(to_hashable(item), item)
    return list(first.values())


def _filter_shape(args: Json) -> None:
    if isinstance(args, FunctionCall):
        return
    remedy = public("Write [[VALUE, ...], [ITEM, ...]].")
    if not isinstance(args, list):
        raise FunctionError(public('Argument to "filter" must be a list'), remedy)
    if len(args) != 2:
        form = f"of the form [values, sequence] but got {len(args)} arguments instead"
        raise FunctionError(public(f'"filter" expected 2 arguments {form}'), remedy)


def _contains_shape(args: Json) -> None:
    if isinstance(args, list) and len(args) != 2:
        reason = 'Arguments to "contains" must be of the form: [value1, [value1, value2]]'
        raise FunctionError(public(reason), public("Write contains: [VALUE, [ITEM, ...]]."))
    CONTAINS_LIST(args)


CONTAINS_LIST = list_shape("contains", '[ "value1", [ "value1", "value2"]]', 2, 2)
CONCAT = "[ [ <value 1>, <value 2> ], [ <value 3>, <value 4> ] ]"
FILTER = Function(
    _filter,
    _filter_shape,
    with_placeholders=placeholders.list_arguments,
)
CONTAINS = Function(
    _contains,
    _contains_shape,
    with_placeholders=placeholders.contains_arguments,
)
LIST_CONCAT = Function(
    _concat,
    list_shape("list_concat", CONCAT, 0, error=DeferredFormError),
    with_placeholders=placeholders.list_arguments,
)
LIST_CONCAT_UNIQUE = Function(
    _concat_unique,
    list_shape("list_concat_unique", CONCAT, 0, error=DeferredFormError),
    with_placeholders=placeholders.list_arguments,
)

# -- URLs -----------------------------------------------------------------------------------------

#: URL schemes that have an authority part, even if it is empty (as Python's
#: urllib.parse.uses_netloc).
WITH_HOST = frozenset(
    [
        "file",
        "ftp",
        "git",
        "git+ssh",
        "gopher",
        "http",
        "https",
        "imap",
        "mms",
        "nfs",
        "nntp",
        "prospero",
        "rsync",
        "rtsp",
        "rtspu",
        "sftp",
        "shttp",
        "snews",
        "svn",
        "svn+ssh",
        "telnet",
        "wais",
        "ws",
        "wss",
    ]
)
URL_PARTS = frozenset(
    {"scheme", "username", "password", "host", "port", "path", "query", "fragment"}
)


def _part(args: Mapping[str, Json], name: str) -> str:
    value = args.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidCall(
            public(f'The "{name}" argument to "make_url" must be a string'),
            public(f"Write {name} as text."),
        )
    return value


def _port(args: Mapping[str, Json]) -> str:
    given = args.get("port")
    if given is None:
        return ""
    try:
        port = int(given) if isinstance(given, str) else given
        if not isinstance(port, int) or isinstance(port, bool):
            raise ValueError
    except ValueError:
        reason = "must be a number"
        raise InvalidCall(
            Quoting(
                f"Invalid URL port {quote_value(given)}, {reason}", f"Invalid URL port, {reason}"
            ),
            public("Write a port such as 8080."),
        ) from None
    if not 1 <= port <= 65535:
        reason = "must be in range 1-65535"
        raise InvalidCall(
            Quoting(f"Invalid URL port {port}, {reason}", f"Invalid URL port, {reason}"),
            public("Write a port such as 8080."),
        )
    return f":{given}"


def _authority(args: Mapping[str, Json]) -> str:
    username, password, host = (_part(args, one) for one in ("username", "password", "host"))
    user = quote(username, safe="")
    if password:
        user += ":" + quote(password, safe="")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    host = quote(host, safe=":")
    if ":" in host:
        host = f"[{host}]"
    return f"{user}@{host}{_port(args)}" if user else f"{host}{_port(args)}"


def _make_url(args: Mapping[str, Json]) -> Json:
    authority, path = _authority(args), quote(_part(args, "path"))
    scheme = _part(args, "scheme")
    if ":" in scheme:
        raise FunctionError(
            "URL \"scheme\" should not contain ':'", public("Write http, not http://.")
        )
    with_host = authority or (scheme in WITH_HOST and not path.startswith("//"))
    if with_host and path and not path.startswith("/"):
        path = "/" + path
    query = {} if args.get("query") is None else args["query"]
    if not isinstance(query, dict):
        raise InvalidCall(
            public('The "query" argument to "make_url" must be a map'),
            public("Write query: {NAME: VALUE}."),
        )
    fragment = quote(_part(args, "fragment"))
    return "".join(
        (
            f"{scheme}:" if scheme else "",
            f"//{authority}" if with_host else "",
            path,
            "?" + urlencode(query, safe="/") if query else "",
            f"#{fragment}" if fragment else "",
        )
    )


def _url_shape(args: Json) -> None:
    if isinstance(args, FunctionCall):
        return
    remedy = public(f"Its keys are {', '.join(sorted(URL_PARTS))}.")
    if not isinstance(args, dict):
        raise FunctionError(public('The arguments to "make_url" must be a map'), remedy)
    if unknown := args.keys() - URL_PARTS:
        reason = 'Invalid arguments to "make_url"'
        names = ", ".join(sorted(map(str, unknown)))
        raise FunctionError(Quoting(f"{reason}: {names}", reason), remedy)
    if isinstance(port := args.get("port"), str) and not _is_integer(port):
        reason = "Invalid URL port"
        called = f'"{port}" for make_url called with {quote_as_heat(args)}'
        raise FunctionError(
            Quoting(f"{reason} {called}", reason), public("Write a port such as 8080.")
        )


def _is_integer(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


MAKE_URL = Function(
    _make_url,
    _url_shape,
    with_placeholders=placeholders.map_arguments,
)
