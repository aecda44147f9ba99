"""The sections `moved` and `import` of a template: resources that get another name, and physical
resources that the stack takes over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from engine.errors import Findings, one_of
from engine.hot.syntax.keyed_names import base_name
from engine.words import Json

#: Maximum number of entries of one section.
MAX_ENTRIES: Final = 1000


@dataclass(frozen=True, slots=True)
class MovedResource:
    """A resource that has the name `to` now. place: of the entry."""

    name: str
    to: str
    place: str


@dataclass(frozen=True, slots=True)
class ImportedResource:
    """A resource that adopts a physical resource. id: a snippet. place: of the entry."""

    name: str
    id: Json
    place: str


def _is_named(name: str, resources: Mapping[str, Json]) -> bool:
    """Return whether the template may have a resource of this name. The keys of `for_each` are not
    known here."""
    base = base_name(name)
    if base is not None and "${" in name:
        return False
    body = resources.get(name if base is None else base)
    has_keys = isinstance(body, dict) and "for_each" in body
    return body is not None and has_keys == (base is not None)


def _missing(name: str, resources: Mapping[str, Json]) -> tuple[str, str]:
    """Return the reason and the remedy about a name that the template does not have."""
    base = base_name(name)
    if "${" in name:
        return not_replaced(name)
    if base is None and name in resources:
        remedy = f"Name one of them with its key: '{name}[\"KEY\"]'."
        return f'"{name}" has "for_each", and is several resources.', remedy
    if base in resources:
        return f'"{base}" has no "for_each".', f"Write {base}."
    return f'"{name}" is not in the template.', one_of(name, [*resources], "Resources")


def not_replaced(name: str) -> tuple[str, str]:
    """Return the reason and the remedy about a name with a reference, which the template does not
    have."""
    base = base_name(name)
    example = f"'{base}[\"KEY\"]'" if base else "NAME"
    reason = f'References such as ${{name}} are not replaced in names of resources: "{name}".'
    return reason, f"Write an entry for each resource, with its whole name: {example}."


def read_moved(
    value: Json, resources: Mapping[str, Json], findings: Findings
) -> tuple[MovedResource, ...]:
    """Read the section `moved`. resources: the section of the template.

    A chain (`a` to `b`, `b` to `c`) is followed to its end.
    """
    entries = [
        (entry["from"], entry["to"], place)
        for place, entry in _entries("moved", value, ("from", "to"), findings)
        if _are_names(entry, ("from", "to"), place, findings)
    ]
    next_names: dict[str, str] = {}
    for name, to, place in entries:
        if name in next_names:
            findings.add(f"{place}.from", f'"{name}" is moved twice.', "Remove one of two.")
        if base_name(name) is None and _is_named(name, resources):
            reason = f'"{name}" is still in the template.'
            findings.add(f"{place}.from", reason, "Remove it there: it has another name now.")
        elif "${" in name:
            findings.add(f"{place}.from", *not_replaced(name))
        next_names[name] = to
    moved = []
    for name, to, place in entries:
        last = _last_name(to, next_names)
        if not _is_named(last, resources):
            reason, remedy = "The names form a cycle.", "Remove one of the entries."
            if last:
                reason, remedy = _missing(to, resources)
            findings.add(f"{place}.to", reason, remedy)
        elif "${" in to and to != last:
            findings.add(f"{place}.to", *not_replaced(to))
        moved.append(MovedResource(name, last, place))
    return tuple(moved)


def _last_name(name: str, next_names: Mapping[str, str]) -> str:
    """Return the end of a chain, or "" for a cycle."""
    seen: set[str] = set()
    while name in next_names:
        if name in seen:
            return ""
        seen.add(name)
        name = next_names[name]
    return name


def read_imported(
    value: Json, resources: Mapping[str, Json], findings: Findings
) -> tuple[ImportedResource, ...]:
    """Read the section `import`. resources: the section of the template."""
    found: dict[str, ImportedResource] = {}
    for place, entry in _entries("import", value, ("resource", "id"), findings):
        if not _are_names(entry, ("resource",), place, findings):
            continue
        name = entry["resource"]
        if not _is_named(name, resources):
            findings.add(f"{place}.resource", *_missing(name, resources))
        if name in found:
            findings.add(f"{place}.resource", f'"{name}" is imported twice.', "Remove one of two.")
        found[name] = ImportedResource(name, entry["id"], place)
    return tuple(found.values())


def _entries(
    section: str, value: Json, keys: tuple[str, ...], findings: Findings
) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield the place of each entry, and the entry, if it has exactly these keys."""
    form = f"Write [{{{', '.join(f'{key}: ...' for key in keys)}}}]."
    if value is None:
        return
    if not isinstance(value, list) or len(value) > MAX_ENTRIES:
        findings.add(section, f"This must be a list of at most {MAX_ENTRIES} entries.", form)
        return
    for index, entry in enumerate(value):
        place = f"{section}[{index}]"
        if not isinstance(entry, dict):
            findings.add(place, "An entry must be a map.", form)
        elif unknown := [str(key) for key in entry if key not in keys]:
            reason = f'"{unknown[0]}" is not a valid keyword here'
            findings.add(f"{place}.{unknown[0]}", reason, one_of(unknown[0], keys, "Keys"))
        elif missing := [key for key in keys if key not in entry]:
            findings.add(place, f'"{missing[0]}" is missing.', form)
        else:
            yield place, entry


def _are_names(
    entry: Mapping[str, Json], keys: tuple[str, ...], place: str, findings: Findings
) -> bool:
    wrong = [key for key in keys if not isinstance(entry[key], str) or not entry[key]]
    for key in wrong:
        findings.add(
            f"{place}.{key}", "This must be the name of a resource.", "Write the name as text."
        )
    return not wrong


def imported_names(document: Mapping[str, Json]) -> frozenset[str]:
    """Return the names in the section `import` of the document of a valid template."""
    return frozenset(one["resource"] for one in document.get("import") or ())
