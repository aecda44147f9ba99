"""The properties of a container as headers of requests. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from engine.errors import Findings
from engine.types.openstack.service_errors import CloudError
from engine.types.text_cleaning import as_text
from engine.words import Json

#: Whose headers a property sets.
CONTAINER, ACCOUNT = "container", "account"
#: The properties whose entries are headers, with what precedes their names.
MAPS: Final = {"X-Container-Meta": "X-Container-Meta-", "X-Account-Meta": "X-Account-Meta-"}
ACLS: Final = ("X-Container-Read", "X-Container-Write")
#: The properties that are headers of a container and of an account.
HEADERS: Final[Mapping[str, Sequence[str]]] = {
    CONTAINER: ("X-Container-Meta", *ACLS),
    ACCOUNT: ("X-Account-Meta",),
}
#: Names of metadata that begin with this are Headgate's own.
RESERVED: Final = "headgate-operation-"
NAME: Final = "name"
#: Bytes of a name.
MAX_NAME: Final = 256
_KEY = re.compile(r"[!#$%&'*+.^`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def remover(header: str) -> str:
    """The header that removes a header of a container or account."""
    return f"X-Remove-{header.removeprefix('X-')}"


def headers_of(properties: Mapping[str, Json], of: str) -> dict[str, str]:
    """The headers of the container or its account. Raises CloudError if Swift cannot store one."""
    findings = Findings()
    check_container(properties, "", findings)
    for one in findings.all:
        public = "a header of the container cannot be stored"
        raise CloudError(f"{one.place.lstrip('.')} {one.reason}. {one.remedy}", public=public)
    return {name: text for name, text in _headers(properties, of)}


def header_names(properties: Mapping[str, Json], of: str) -> set[str]:
    return {name for name, _ in _headers(properties, of)}


def _headers(properties: Mapping[str, Json], of: str) -> Iterator[tuple[str, str]]:
    for name in HEADERS[of]:
        value = properties.get(name)
        if name in MAPS:
            for key, one in (value or {}).items():
                if one is not None:
                    yield f"{MAPS[name]}{key}", as_text(one)
        elif value:
            yield name, str(value)


def with_removals(wanted: Mapping[str, str], before: Collection[str]) -> dict[str, str]:
    """The headers of a request after which those in `before` are gone, unless they are wanted."""
    kept = {one.lower() for one in wanted}
    gone = {remover(one): "x" for one in sorted(before) if one.lower() not in kept}
    return {**gone, **wanted}


def check_name(name: str) -> str | None:
    """Why a container cannot have a name; None if it can."""
    if not name or name in (".", ".."):
        return f"cannot be '{name}'"
    if "/" in name or _CONTROL.search(name):
        return "cannot have a slash or a control character"
    if len(name.encode(errors="replace")) > MAX_NAME:
        return f"is longer than {MAX_NAME} bytes"
    return None


def check_container(properties: Mapping[str, Json], place: str, findings: Findings) -> None:
    """Report what Swift cannot store. place: of the properties."""
    name = properties.get(NAME)
    if isinstance(name, str) and (reason := check_name(name)):
        remedy = "Use another name, or remove the property: a name is derived from the stack."
        findings.add(f"{place}.{NAME}", reason, remedy)
    for acl in ACLS:
        if isinstance(value := properties.get(acl), str) and _CONTROL.search(value):
            findings.add(f"{place}.{acl}", _HAS_CONTROL, "Write the list in one line.")
    for name in MAPS:
        if isinstance(given := properties.get(name), Mapping):
            for key, reason, remedy in _entry_errors(given):
                findings.add(f"{place}.{name}.{key}", reason, remedy)


_HAS_CONTROL: Final = "has a control character, such as a line break"


def _entry_errors(given: Mapping[str, Json]) -> Iterator[tuple[str, str, str]]:
    """(key, reason, remedy) of entries that cannot be headers."""
    known: dict[str, str] = {}
    for key, value in given.items():
        lower = str(key).lower()
        if not _KEY.fullmatch(str(key)):
            yield str(key), "cannot be the name of a header", "Use letters, digits and hyphens."
        elif lower.startswith(RESERVED):
            yield key, "is reserved: Headgate finds the container of a create by it", "Remove it."
        elif lower in known:
            reason = f'is the same header as "{known[lower]}": Swift ignores case'
            yield key, reason, "Remove one of them."
        elif value is not None and _CONTROL.search(as_text(value)):
            yield key, _HAS_CONTROL, "Write the value in one line."
        known[lower] = str(key)
