"""Names of resources in the section `data`: `data.net` is the entry `net`."""

from typing import Final

PREFIX: Final = "data."


def data_name(name: str) -> str:
    """Return the name of the resource of an entry."""
    return f"{PREFIX}{name}"


def is_data_name(name: str) -> bool:
    """Return whether a name may be that of an entry of the section `data`."""
    return name.startswith(PREFIX)
