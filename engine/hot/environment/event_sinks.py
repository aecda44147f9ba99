"""The `event_sinks` of an environment: subscribers of the events of its stack.

The caller checks whether the channel exists and accepts the target.
"""

from dataclasses import dataclass, field

from engine.digest import read_digest_period
from engine.errors import Findings, nearest, quote_value
from engine.weekly_window import read_window
from engine.words import Json

#: Keys of filters, each a list of globs.
FILTERS = ("events", "resources", "resource_types", "points")
QUIET_HOURS = "quiet_hours"
DIGEST = "digest"
KEYS = ("type", "target", *FILTERS, "ordered", QUIET_HOURS, DIGEST)
SINK_EXAMPLE = "Write a map such as {type: webhook, target: https://example.org/hook}."
MAX_SINKS = 20


@dataclass(frozen=True, slots=True)
class EventSink:
    """type: the channel's name. filters: globs by their key in FILTERS; empty: all events.
    quiet_hours, digest: as declared; the caller checks whether the channel can have them."""

    type: str
    target: str
    filters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ordered: bool = True
    place: str = field(default="event_sinks", compare=False)
    quiet_hours: Json = None
    digest: Json = None


def read_event_sinks(value: Json, findings: Findings) -> list[EventSink]:
    """Return the event sinks without duplicates; faults are added to the findings."""
    if value is None:
        return []
    if not isinstance(value, list):
        findings.add("event_sinks", "This must be a list.", SINK_EXAMPLE)
        return []
    if len(value) > MAX_SINKS:
        findings.add(
            "event_sinks",
            f"{len(value)} event sinks are declared; at most {MAX_SINKS} are allowed.",
            "",
        )
        return []
    sinks: list[EventSink] = []
    for index, item in enumerate(value):
        sink = _sink(item, f"event_sinks[{index}]", findings)
        if sink is not None and sink not in sinks:
            sinks.append(sink)
    return sinks


def _sink(item: Json, place: str, findings: Findings) -> EventSink | None:
    before = len(findings.all)
    if not isinstance(item, dict):
        findings.add(place, f"{quote_value(item)} is not an event sink.", SINK_EXAMPLE)
        return None
    for key in item:
        if key not in KEYS:
            remedy = nearest(str(key), KEYS) or f"Known: {', '.join(KEYS)}."
            findings.add(f"{place}.{key}", "is not a known key", remedy)
    for key in ("type", "target"):
        if not isinstance(item.get(key), str) or not item[key]:
            findings.add(f"{place}.{key}", "must be a string", SINK_EXAMPLE)
    filters = {key: _globs(item[key], f"{place}.{key}", findings) for key in FILTERS if key in item}
    quiet_hours, digest = item.get(QUIET_HOURS), item.get(DIGEST)
    read_window(quiet_hours, f"{place}.{QUIET_HOURS}", findings)
    read_digest_period(digest, f"{place}.{DIGEST}", findings)
    holding = [key for key in (QUIET_HOURS, DIGEST) if item.get(key) is not None]
    ordered = item.get("ordered", not holding)
    if not isinstance(ordered, bool):
        findings.add(f"{place}.ordered", "must be true or false", "Leave it out for true.")
    elif ordered:
        reason = "is not possible for a subscription with ordered deliveries"
        for key in holding:
            findings.add(f"{place}.{key}", reason, "Set ordered to false, or leave it out.")
    if len(findings.all) > before:
        return None
    return EventSink(item["type"], item["target"], filters, ordered, place, quiet_hours, digest)


def _globs(value: Json, place: str, findings: Findings) -> tuple[str, ...]:
    globs = [value] if isinstance(value, str) else value
    if not isinstance(globs, list) or not all(isinstance(one, str) and one for one in globs):
        findings.add(place, "must be a list of globs", "Write a list such as [headgate.hook.*].")
        return ()
    return tuple(globs)
