"""Functions of HOT for maps, lists and URLs. function.py describes the interface."""

from collections.abc import Hashable, Mapping
from urllib.parse import quote, urlencode

from engine.errors import Quoting, public
from engine.hot.functions import placeholders
from engine.hot.functions.function import (
    Function,
    FunctionError,
    InvalidCall,
    list_shape,
    map_shape,
    quoted,
)
from engine.hot.functions.text import to_json_text
from engine.words import Json

# -- maps -----------------------------------------------------------------------------------------


def _as_map(value: Json, name: str) -> dict[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        reason = f'"{name}" takes maps'
        raise FunctionError(Quoting(f"{reason}, not {quoted(value)}", reason))
    return value


def _map_merge(args: list[Json]) -> Json:
    merged: dict[str, Json] = {}
    for one in args:
        merged.update(_as_map(one, "map_merge"))
    return merged


def _map_replace(args: list[Json]) -> Json:
    given, rules = (_as_map(one, "map_replace") for one in args)
    if not rules.keys() <= {"keys", "values"}:
        raise FunctionError('The second argument of "map_replace" has "keys" and "values" only.')
    keys = _as_map(rules.get("keys"), "map_replace")
    values = _as_map(rules.get("values"), "map_replace")
    replaced: dict[str, Json] = {}
    for old, value in given.items():
        new = old if keys.get(old) is None else keys[old]
        if isinstance(new, int | float):
            new = to_json_text(new)
        if not isinstance(new, str):
            reason = '"map_replace" can only rename a key to text'
            raise FunctionError(Quoting(f"{reason}, not to {quoted(new)}", reason))
        if new in given and new != old:
            raise FunctionError(f"key replacement {new} collides with a key in the input map")
        if new in replaced:
            raise FunctionError(f"key replacement {new} collides with a key in the output map")
        replaced[new] = values.get(value, value) if isinstance(value, str) else value
    return replaced


MAP_MERGE = Function(
    _map_merge,
    list_shape("map_merge", '[ { "key1": "val1" }, { "key2": "val2" } ]', 0),
    with_placeholders=placeholders.list_arguments,
)
MAP_REPLACE = Function(
    _map_replace,
    list_shape(
        "map_replace", '[ {"k1": "v1"}, {"keys": {"k1": "K1"}, "values": {"v1": "V1"}} ]', 2, 2
    ),
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
        raise FunctionError('"filter" only works with lists')
    if not values:
        return given
    if not isinstance(values, list):
        raise FunctionError('"filter" filters a list of values')
    unwanted = {to_hashable(value) for value in values}
    return [item for item in given if to_hashable(item) not in unwanted]


def _contains(args: list[Json]) -> Json:
    value, sequence = args
    if isinstance(sequence, str):
        if not isinstance(value, str):
            raise FunctionError(
                f'"contains" looks in a text for text only, not for {quoted(value)}'
            )
    elif not isinstance(sequence, list):
        raise FunctionError('Second argument to "contains" should be a sequence.')
    return value in sequence


def _concat(args: list[Json]) -> list[Json]:
    whole: list[Json] = []
    for one in args:
        if one is not None and not isinstance(one, list):
            reason = "Items to concat must be lists"
            raise FunctionError(Quoting(f"{reason}, not {quoted(one)}", reason))
        whole += one or []
    return whole


def _concat_unique(args: list[Json]) -> Json:
    """Concatenate lists and keep the first of equal items."""
    first: dict[Hashable, Json] = {}
    for item in _concat(args):
        first.setdefault(to_hashable(item), item)
    return list(first.values())


CONCAT = "[ [<value 1>], [<value 2>] ]"
FILTER = Function(
    _filter,
    list_shape("filter", "[ [values], [list] ]", 2, 2),
    with_placeholders=placeholders.list_arguments,
)
CONTAINS = Function(
    _contains,
    list_shape("contains", '[ "value1", [ "value1", "value2"]]', 2, 2),
    with_placeholders=placeholders.contains_arguments,
)
LIST_CONCAT = Function(
    _concat, list_shape("list_concat", CONCAT, 0), with_placeholders=placeholders.list_arguments
)
LIST_CONCAT_UNIQUE = Function(
    _concat_unique,
    list_shape("list_concat_unique", CONCAT, 0),
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
        raise InvalidCall(public(f'The "{name}" of "make_url" must be text.'))
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
            Quoting(f"Invalid URL port {quoted(given)}, {reason}", f"Invalid URL port, {reason}")
        ) from None
    if not 1 <= port <= 65535:
        reason = "must be in range 1-65535"
        raise InvalidCall(
            Quoting(f"Invalid URL port {port}, {reason}", f"Invalid URL port, {reason}")
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
        raise InvalidCall("URL \"scheme\" should not contain ':'")
    with_host = authority or (scheme in WITH_HOST and not path.startswith("//"))
    if with_host and path and not path.startswith("/"):
        path = "/" + path
    query = {} if args.get("query") is None else args["query"]
    if not isinstance(query, dict):
        raise InvalidCall('The "query" of "make_url" must be a map.')
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


MAKE_URL = Function(
    _make_url,
    map_shape("make_url", frozenset(), URL_PARTS),
    with_placeholders=placeholders.map_arguments,
)
