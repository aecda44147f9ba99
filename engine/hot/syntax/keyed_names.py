"""Names of resources with `for_each`: `web["a"]` is the resource of the key `a` in `web`."""

import re
from collections.abc import Collection, Mapping
from typing import Final

#: Characters of a key: without those that have a meaning in paths, patterns and URLs.
KEY: Final = re.compile(r"[\w.@+-]{1,100}")
#: A name with its key in brackets.
_OTHER_FORM: Final = re.compile(r"""([^\[]+)\[["']?([\w.@+-]+)["']?\]""")
#: Characters of the longest key, with the dash before it in a plain name.
_MAX_KEY_WITH_DASH = 101


def keyed_name(base: str, key: str) -> str:
    """Return the name of the resource with a key."""
    return f'{base}["{key}"]'


def base_name(name: str) -> str | None:
    """Return `web` for `web["a"]`; None for the name of a resource without a key."""
    if not name.endswith('"]'):
        return None
    base, bracket, _ = name.partition('["')
    return base if bracket and base else None


def plain_name(name: str) -> str:
    """Return the name without quotes and brackets, for Heat's clients and in a cloud: `web-a`."""
    base = base_name(name)
    return name if base is None else f"{base}-{name[len(base) + 2 : -2]}"


def plain_path(path: str) -> str:
    """Return a path of resources with plain names."""
    return "/".join(map(plain_name, path.split("/")))


def other_names(name: str) -> tuple[str, ...]:
    """Return the other names by which patterns mean a resource: `web-a` and `web` for
    `web["a"]`."""
    base = base_name(name)
    return () if base is None else (plain_name(name), base)


def possible_names(wanted: str) -> list[str]:
    """Return all names whose plain name is this one: `a-b-c`, `a["b-c"]` and `a-b["c"]` for
    `a-b-c`. The name itself is the first."""
    start = max(len(wanted) - _MAX_KEY_WITH_DASH, 0)
    dashes = [place for place in range(start, len(wanted)) if wanted[place] == "-"]
    parts = [(wanted[:dash], wanted[dash + 1 :]) for dash in dashes]
    return [wanted, *(keyed_name(base, key) for base, key in parts if base and KEY.fullmatch(key))]


def quote_name(name: str) -> str:
    """Return a name as YAML: in quotes if it has a key."""
    return name if base_name(name) is None else f"'{name}'"


def meant_name(wanted: str, keyed: Mapping[str, Mapping[str, str]]) -> str | None:
    """Return the resource that a wrong name such as `web-a`, `web.a` or `web[a]` means. keyed:
    names by base name and key."""
    found = _OTHER_FORM.fullmatch(wanted)
    parts = [(wanted[:at], wanted[at + 1 :]) for at, one in enumerate(wanted[:200]) if one in "-.["]
    parts += [(found[1], found[2])] if found else []
    names = (keyed.get(base, {}).get(key) for base, key in parts)
    return next((name for name in names if name is not None), None)


def find_name(wanted: str, names: Collection[str]) -> str | None:
    """Return the resource of a name or a plain name; None if there is none, or more than one with
    this plain name. The name itself takes precedence.
    """
    found = [one for one in possible_names(wanted) if one in names]
    return found[0] if len(found) == 1 or wanted in found else None
