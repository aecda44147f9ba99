"""Names of resources with `for_each`: `web["a"]` is the resource of the key `a` in `web`."""

import re
from collections.abc import Collection
from typing import Final

#: Characters of a key: without those that have a meaning in paths, patterns and URLs.
KEY: Final = re.compile(r"[\w.@+-]{1,100}")


def keyed_name(base: str, key: str) -> str:
    """Return the name of the resource with a key."""
    return f'{base}["{key}"]'


def base_name(name: str) -> str | None:
    """Return `web` for `web["a"]`; None for the name of a resource without a key."""
    if not name.endswith('"]'):
        return None
    base, bracket, _ = name.partition('["')
    return base if bracket and base else None


def find_name(wanted: str, names: Collection[str]) -> str | None:
    """Return the resource of a name, or of a name as `plain_name` returns it; None if there is none
    or more than one. Other names take precedence.
    """
    if wanted in names:
        return wanted
    keyed = [one for one in names if base_name(one) is not None and plain_name(one) == wanted]
    return keyed[0] if len(keyed) == 1 else None


def plain_name(name: str) -> str:
    """Return the name without quotes and brackets, for names in a cloud: `web-a`."""
    base = base_name(name)
    return name if base is None else f"{base}-{name[len(base) + 2 : -2]}"
