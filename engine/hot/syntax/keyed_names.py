"""Names of resources with `for_each`: `web["a"]` is the resource of the key `a` in `web`."""

import re
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


def plain_name(name: str) -> str:
    """Return the name without quotes and brackets, for names in a cloud: `web-a`."""
    base = base_name(name)
    return name if base is None else f"{base}-{name[len(base) + 2 : -2]}"
