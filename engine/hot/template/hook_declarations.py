"""Hook declarations in templates and environments. engine/hooks checks and interprets the rules."""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.errors import Findings, quote_value
from engine.hot.syntax.references import REFERENCE
from engine.words import Json


@dataclass(frozen=True, slots=True)
class HookDeclaration:
    """One hook declaration.

    pattern: a glob for resource paths, with `/` between levels of nesting; "" for the stack. item:
    a string such as `pre-create` (Heat's short form; then `short` is true), or a map with the rule
    without its `at`. place: where it was declared.
    """

    pattern: str
    item: Json
    place: str
    short: bool


def escape_glob(name: str) -> str:
    """Return a glob that matches exactly this name."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


def read_resource_hooks(
    pattern: str, value: Json, place: str, findings: Findings
) -> list[HookDeclaration]:
    """Read the value of a resource's `hooks` key: a string, a rule, or a list of both."""
    items = value if isinstance(value, list) else [value]
    declarations: list[HookDeclaration] = []
    for index, item in enumerate(items):
        here = f"{place}[{index}]" if isinstance(value, list) else place
        if not isinstance(item, str | dict):
            findings.add(
                here, f"{quote_value(item)} is not a hook.", HOOK_EXAMPLE, "InvalidBreakPointHook"
            )
        elif isinstance(item, dict) and "at" in item:
            findings.add(
                f"{here}.at", '"at" is not allowed in a rule of one resource.', "Leave out `at`."
            )
        else:
            declarations.append(HookDeclaration(pattern, item, here, isinstance(item, str)))
    return declarations


HOOK_EXAMPLE = (
    'Write a text such as "pre-create", or a rule such as {on: [pre-create], mode: wait}.'
)


def read_hook_list(value: Json, place: str, findings: Findings) -> list[HookDeclaration]:
    """Read a top-level `hooks` list of rules, each with `at` or for the whole stack."""
    if value is None:
        return []
    if not isinstance(value, list):
        findings.add(place, "This must be a list of rules.", "", "InvalidBreakPointHook")
        return []
    declarations: list[HookDeclaration] = []
    for index, item in enumerate(value):
        here = f"{place}[{index}]"
        if not isinstance(item, dict):
            findings.add(
                here, f"{quote_value(item)} is not a rule.", RULE_EXAMPLE, "InvalidBreakPointHook"
            )
        elif not isinstance(item.get("at", ""), str) or item.get("at", "x") == "":
            findings.add(
                f"{here}.at",
                '"at" must be a pattern of resource names that is not empty.',
                RULE_EXAMPLE,
            )
        else:
            rule = {key: part for key, part in item.items() if key != "at"}
            declarations.append(HookDeclaration(item.get("at", ""), rule, here, short=False))
    return declarations


RULE_EXAMPLE = 'Write a map such as {at: "db_*", on: [pre-update], mode: wait}.'


def refuse_references(declarations: Iterable[HookDeclaration], findings: Findings) -> None:
    """Report references such as `${name}` in conditions of rules: they are not replaced there."""
    for one in declarations:
        waiting = [one.item.get("when")] if isinstance(one.item, dict) else []
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                waiting += part.values()
            elif isinstance(part, list):
                waiting += part
            elif isinstance(part, str) and any(
                found[1] is not None for found in REFERENCE.finditer(part)
            ):
                findings.add(
                    f"{one.place}.when",
                    "References are not replaced in conditions.",
                    "Write {get_param: NAME}.",
                    "InvalidBreakPointHook",
                )
                break
