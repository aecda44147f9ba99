"""``event_sinks`` of an environment: who hears of the events of its stack. Whether a channel is
there, and takes a target, is the program's to say.
"""

from dataclasses import dataclass, field

from engine.errors import Findings, nearest
from engine.words import Json

#: Key of a filter -> what it asks for.
FILTERS = ("events", "resources", "resource_types", "points")
KEYS = ("type", "target", *FILTERS, "ordered")
WRITE = "Write a map such as {type: webhook, target: https://example.org/hook}."
MOST = 20


@dataclass(frozen=True, slots=True)
class EventSink:
    """type: of a channel. filters: globs by their key in FILTERS; none: everything."""

    type: str
    target: str
    filters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ordered: bool = True
    place: str = field(default="event_sinks", compare=False)


def read_event_sinks(value: Json, findings: Findings) -> list[EventSink]:
    """What is said twice is there once."""
    if value is None:
        return []
    if not isinstance(value, list):
        findings.add("event_sinks", "This must be a list.", WRITE)
        return []
    if len(value) > MOST:
        findings.add("event_sinks", f"These are {len(value)}; the most is {MOST}.", "")
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
        findings.add(place, f"{item!r} is no event sink.", WRITE)
        return None
    for key in item:
        if key not in KEYS:
            remedy = nearest(str(key), KEYS) or f"Known: {', '.join(KEYS)}."
            findings.add(f"{place}.{key}", "is not known here", remedy)
    for key in ("type", "target"):
        if not isinstance(item.get(key), str) or not item[key]:
            findings.add(f"{place}.{key}", "must be a text", WRITE)
    filters = {key: _globs(item[key], f"{place}.{key}", findings) for key in FILTERS if key in item}
    ordered = item.get("ordered", True)
    if not isinstance(ordered, bool):
        findings.add(f"{place}.ordered", "must be true or false", "Leave it out for true.")
    if len(findings.all) > before:
        return None
    return EventSink(item["type"], item["target"], filters, ordered, place)


def _globs(value: Json, place: str, findings: Findings) -> tuple[str, ...]:
    said = [value] if isinstance(value, str) else value
    if not isinstance(said, list) or not all(isinstance(one, str) and one for one in said):
        findings.add(place, "must be a list of globs", "Write [headgate.hook.*], say.")
        return ()
    return tuple(said)
