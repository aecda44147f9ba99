"""The plan of a change, for people. Formatting only."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from rich.text import Text

from hub.cli.show import named, plain

Json = Any
#: Kind of a change -> its mark and colour, in the order in which they are shown.
MARKS: Mapping[str, tuple[str, str]] = {
    "added": ("+", "green"),
    "updated": ("~", "yellow"),
    "replaced": ("-/+", "magenta"),
    "deleted": ("-", "red"),
}
UNKNOWN = "(unknown until created)"
#: What else may come of it, when a value that nobody knows yet had a part in the prediction.
DOUBT: Mapping[str, str] = {
    "updated": "may be replaced or unchanged",
    "replaced": "may be replaced or updated in place",
}


def picture(name: str, preview: Mapping[str, Json]) -> Text:
    """preview: the API's answer about an update."""
    changes = preview["resource_changes"]
    width = max((len(one["path"]) for kind in MARKS for one in changes[kind]), default=0)
    said = Text()
    for kind, (mark, style) in MARKS.items():
        for one in changes[kind]:
            said.append(f"{mark:<3} {_resource(kind, one, width)}\n", style)
            said.append("".join(f"      {line}\n" for line in properties(one["changes"])))
    said.append(f"{plain(name)}: {counted(changes)}\n")
    said.append("".join(f"{line}\n" for line in outputs(preview.get("outputs", []))))
    said.append("".join(f"{line}\n" for line in stops(preview["stops"])))
    if preview["stale"]:
        names = ", ".join(preview["stale"])
        said.append(f"Out of date and not changed: {plain(names)}\n")
    said.append(f"Plan: {preview['plan_digest']}")
    return said


def _resource(kind: str, one: Mapping[str, Json], width: int) -> str:
    doubt = "" if one["certain"] else f"  ({DOUBT.get(kind, 'perhaps')})"
    return plain(f"{one['path']:<{width}}  {one['resource_type']}{doubt}")


def properties(changes: Mapping[str, Json]) -> Iterator[str]:
    """``name: from -> to``; of what is new only what it will be, unless that is empty."""
    for name, change in changes.items():
        if "from" not in change and change.get("to", UNKNOWN) in (None, "", [], {}):
            continue
        to = _value(change["to"]) if "to" in change else UNKNOWN
        before = f"{_value(change['from'])} -> " if "from" in change else ""
        yield plain(f"{name}: {before}{to}" if name else to)


def _value(value: Json) -> str:
    return orjson.dumps(value).decode()


def counted(changes: Mapping[str, Json]) -> str:
    """``1 added, 2 unchanged``."""
    kinds = (*MARKS, "unchanged")
    found = [f"{len(changes[kind])} {kind}" for kind in kinds if changes[kind]]
    return ", ".join(found) or "nothing to do"


def outputs(found: Json) -> Iterator[str]:
    """Of a stack to be."""
    if found:
        yield "Its outputs:"
    for one in found:
        value = UNKNOWN if one["unknown"] else _value(one["output_value"])
        yield plain(f"      {one['output_key']}: {value}")


def stops(found: Json) -> Iterator[str]:
    if not found:
        yield "No breakpoints."
        return
    yield "Breakpoints, in this order:"
    for number, one in enumerate(found, 1):
        perhaps = "" if one["certain"] else ", perhaps"
        where = f"{named(one['path'])} at {one['point']}{perhaps}"
        yield plain(f"  {number}. {where}: {_what_then(one)}")


def _what_then(one: Mapping[str, Json]) -> str:
    if one["mode"] != "wait":
        return "stops the stack"
    seconds = one["timeout_seconds"]
    until = "" if seconds is None else f" for {duration(seconds)}"
    many = one["approvals"]
    may = "may answer" if many == 1 else f"may answer, and {many} must approve"
    return f"{', '.join(one['answer_by'])} {may}{until}, then: {one['on_timeout']}"


def duration(seconds: float) -> str:
    """In the largest unit that says it exactly: ``2h``, ``90m``, ``45s``."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
