"""The plan of a dry run, for people. Formatting only."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from engine.hooks.durations import format_duration
from hub.cli.printing.output import label
from hub.cli.printing.renderables import WrappedText, styled_text, wrapped_text
from hub.cli.printing.tables import plain

if TYPE_CHECKING:
    from rich.text import Text

Json = Any
#: Mark and color of each kind of change, in the order of the output.
MARKS: Mapping[str, tuple[str, str]] = {
    "added": ("+", "green"),
    "updated": ("~", "yellow"),
    "replaced": ("-/+", "magenta"),
    "deleted": ("-", "red"),
}
UNKNOWN = "(unknown until created)"
#: Other possible changes, where the expected change depends on an unknown value.
DOUBT: Mapping[str, str] = {
    "updated": "may be replaced or unchanged",
    "replaced": "may be replaced or updated in place",
    "unchanged": "may be changed or replaced",
}
#: Mark and color of resources without an expected change that unknown values can change.
UNCERTAIN_MARK = ("?", "cyan")


def render(name: str, preview: Mapping[str, Json]) -> WrappedText:
    """preview: the response of the API."""
    return wrapped_text(_plan_text(name, preview))


def _plan_text(name: str, preview: Mapping[str, Json]) -> "Text":
    changes = preview["resource_changes"]
    uncertain = uncertain_resources(changes)
    listed = [one for kind in MARKS for one in changes[kind]] + uncertain
    width = max((len(one["path"]) for one in listed), default=0)
    text = styled_text()
    for kind, (mark, style) in MARKS.items():
        for one in changes[kind]:
            text.append(f"{mark:<3} {_resource(kind, one, width)}\n", style)
            details = (*_reasons(one), *properties(one["changes"]))
            text.append("".join(f"      {line}\n" for line in details))
    mark, style = UNCERTAIN_MARK
    for one in uncertain:
        text.append(f"{mark:<3} {_resource('unchanged', one, width)}\n", style)
    for one in changes["unchanged"]:
        if one.get("moved_from") and one["certain"]:
            text.append(f">   {_resource('unchanged', one, width)}\n")
    text.append("".join(f"{line}\n" for line in adopted_lines(changes)))
    text.append(f"{plain(name)}: {count_changes(changes)}\n")
    text.append("".join(f"{line}\n" for line in outputs(preview.get("outputs", []))))
    text.append("".join(f"{line}\n" for line in stops(preview["stops"])))
    if preview["out_of_date"]:
        names = ", ".join(preview["out_of_date"])
        text.append(f"Out of date and not changed: {plain(names)}\n")
    text.append("".join(f"{line}\n" for line in unknown_lines(preview.get("unknown_states", ()))))
    text.append(f"Plan: {preview['plan_digest']}")
    return text


def unknown_lines(found: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """The resources that a converge does not repair, because their state is unknown. found: of the
    API."""
    if found:
        yield "Not repaired, because the state is unknown:"
    for one in found:
        yield plain(f"      {known_state(one)}: {one['reason']}")


def known_state(one: Mapping[str, Json]) -> str:
    """``web (last known: changed)``."""
    known = one["last_known_state"]
    return f"{one['path']} (last known: {known})" if known else str(one["path"])


def uncertain_resources(changes: Mapping[str, Json]) -> list[Json]:
    """Return the resources without an expected change that unknown values can change."""
    return [one for one in changes["unchanged"] if not one["certain"]]


def _resource(kind: str, one: Mapping[str, Json], width: int) -> str:
    doubt = "" if one["certain"] else f"  ({DOUBT.get(kind, 'perhaps')})"
    moved = f"  (moved from {one['moved_from']})" if one.get("moved_from") else ""
    taken = f"  (imported: {one['imported_id']})" if one.get("imported_id") else ""
    where = f"  (at {one['label']})" if one.get("label") else ""
    return plain(f"{one['path']:<{width}}  {one['resource_type']}{moved}{taken}{where}{doubt}")


def _reasons(one: Mapping[str, Json]) -> Iterator[str]:
    """Why the resource is replaced, and why the operation will be refused."""
    for name in ("replace_reason", "denied"):
        if one.get(name):
            yield plain(one[name])


def properties(changes: Mapping[str, Json]) -> Iterator[str]:
    """``name: from -> to``; for new resources only the new values, without empty ones."""
    for name, change in changes.items():
        if "from" not in change and change.get("to", UNKNOWN) in (None, "", [], {}):
            continue
        to = value_text(change["to"]) if "to" in change else UNKNOWN
        before = f"{value_text(change['from'])} -> " if "from" in change else ""
        yield plain(f"{name}: {before}{to}" if name else to)


def adopted_lines(changes: Mapping[str, Json]) -> Iterator[str]:
    """The values that resources keep although their template has others."""
    for kind in (*MARKS, "unchanged"):
        for one in changes[kind]:
            for value in one.get("adopted", ()):
                yield adopted_text(one["path"], value)


def adopted_text(path: str, one: Mapping[str, Json]) -> str:
    """``web.size: 5 (adopted by ann on 2026-12-01 10:00 UTC; the template says 3)``. path: of the
    resource."""
    at = datetime.fromisoformat(one["adopted_at"])
    when = f"{one['adopted_by']} on {at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    name = f"{path}.{one['path'].removeprefix('$.')}"
    values = f"{value_text(one['value'])} (adopted by {when}; the template says"
    return plain(f"{name}: {values} {value_text(one['template'])})")


def value_text(value: Json) -> str:
    """The value of a property, as JSON."""
    return orjson.dumps(value).decode()


def count_changes(changes: Mapping[str, Json]) -> str:
    """``1 added, 1 may change, 2 unchanged``."""
    uncertain = len(uncertain_resources(changes))
    counts = [
        *((len(changes[kind]), kind) for kind in MARKS),
        (uncertain, "may change"),
        (len(changes["unchanged"]) - uncertain, "unchanged"),
    ]
    found = [f"{count} {kind}" for count, kind in counts if count]
    return ", ".join(found) or "nothing to do"


def outputs(found: Json) -> Iterator[str]:
    """The outputs of a new stack."""
    if found:
        yield "Its outputs:"
    for one in found:
        value = UNKNOWN if one["unknown"] else value_text(one["output_value"])
        yield plain(f"      {one['output_key']}: {value}")


def stops(found: Json) -> Iterator[str]:
    if not found:
        yield "No breakpoints."
        return
    yield "Breakpoints, in this order:"
    for number, one in enumerate(found, 1):
        perhaps = "" if one["certain"] else ", perhaps"
        where = f"{label(one['path'])} at {one['point']}{perhaps}"
        yield plain(f"  {number}. {where}: {_effect(one)}")


def _effect(one: Mapping[str, Json]) -> str:
    if one["mode"] != "wait":
        return "stops the stack"
    seconds = one["timeout_seconds"]
    until = "" if seconds is None else f" for {format_duration(timedelta(seconds=seconds))}"
    many = one["approvals"]
    may = "may answer" if many == 1 else f"may answer, and {many} must approve"
    return f"{', '.join(one['answer_by'])} {may}{until}, then: {one['on_timeout']}"
