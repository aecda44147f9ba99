"""Where hooks are declared. What a rule means (points, modes, times) is engine/hooks' to say."""

from dataclasses import dataclass

from engine.errors import Findings
from engine.words import Json


@dataclass(frozen=True, slots=True)
class DeclaredHook:
    """One declaration of a breakpoint.

    pattern: a glob for the path of resources, a ``/`` for each level of nesting; "" for the stack.
    item: a text such as ``pre-create`` (Heat's short form, ``short``), or a map, the full rule
    without its ``at``. place: where it was written.
    """

    pattern: str
    item: Json
    place: str
    short: bool


def escaped(name: str) -> str:
    """Return a pattern that matches this name only."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def declared_at(pattern: str, value: Json, place: str, findings: Findings) -> list[DeclaredHook]:
    """Read what stands under a ``hooks:`` key: a text, a full rule, or a list of both."""
    items = value if isinstance(value, list) else [value]
    declared: list[DeclaredHook] = []
    for index, item in enumerate(items):
        here = f"{place}[{index}]" if isinstance(value, list) else place
        if not isinstance(item, str | dict):
            findings.add(here, f"{item!r} is no hook.", WRITE, "InvalidBreakPointHook")
        elif isinstance(item, dict) and "at" in item:
            findings.add(f"{here}.at", "The resource is already named here.", "Leave out `at`.")
        else:
            declared.append(DeclaredHook(pattern, item, here, isinstance(item, str)))
    return declared


WRITE = 'Write a text such as "pre-create", or a rule such as {on: [pre-create], mode: wait}.'


def declared_list(value: Json, place: str, findings: Findings) -> list[DeclaredHook]:
    """Read a top-level ``hooks`` list of full rules, each with ``at`` or for the whole stack."""
    if value is None:
        return []
    if not isinstance(value, list):
        findings.add(place, "This must be a list of rules.", "", "InvalidBreakPointHook")
        return []
    declared: list[DeclaredHook] = []
    for index, item in enumerate(value):
        here = f"{place}[{index}]"
        if not isinstance(item, dict):
            findings.add(here, f"{item!r} is no rule.", AT, "InvalidBreakPointHook")
        elif not isinstance(item.get("at", ""), str) or item.get("at", "x") == "":
            findings.add(f"{here}.at", "A rule must say where it holds.", AT)
        else:
            rule = {key: part for key, part in item.items() if key != "at"}
            declared.append(DeclaredHook(item.get("at", ""), rule, here, short=False))
    return declared


AT = 'Write a map such as {at: "db_*", on: [pre-update], mode: wait}.'
