"""A hook with everything that an approver needs, for people. Formatting only."""

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import TYPE_CHECKING, Any

from hub.cli.printing import output
from hub.cli.printing.formats import format_yaml
from hub.cli.printing.plan_output import properties, value_text
from hub.cli.printing.renderables import group, styled_text, wrapped_text
from hub.cli.printing.tables import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = Any
FIELDS = ("hook", "type", "physical_id", "operation", "state", "mode", "rule", "opened_at",
          "deadline", "at_the_deadline", "approvals", "approved_by", "may_answer", "requested_by",
          "notified", "decision", "by", "reason", "may_patch", "dependents", "digest",
          "id")  # fmt: skip
#: Parts of a hook that are shown as YAML, if it has them, with their headings.
DETAILS: Mapping[str, str] = {"ask": "ANSWER DATA, with --data KEY=VALUE", "answers": "ANSWERS"}
RESOURCE_DETAILS: Mapping[str, str] = {"seen": "OBSERVED", "drift": "DRIFT", "renewed": "RENEWED"}


def render(hook: Json) -> "RenderableType":
    resource = hook.get("resource") or {}
    parts: list[RenderableType] = [output.fields(_summary(hook, resource), FIELDS)]
    changes = resource.get("changes") or {}
    new = {name: {"to": value} for name, value in (resource.get("properties") or {}).items()}
    if changes:
        parts += _section("CHANGES", properties(changes))
    if unchanged := {name: one for name, one in new.items() if name not in changes}:
        lines = (f"{name}: {value_text(one['to'])}" for name, one in unchanged.items())
        parts += _section("OTHER PROPERTIES" if changes else "PROPERTIES", lines)
    for document, headings in ((resource, RESOURCE_DETAILS), (hook, DETAILS)):
        for name, heading in headings.items():
            if document.get(name):
                parts += _section(heading, format_yaml(document[name]).splitlines())
    if hint := answer_hint(hook):
        parts += ["", wrapped_text(plain(hint))]
    return group(*parts)


def _summary(hook: Json, resource: Json) -> dict[str, Json]:
    row = output.hook_row(hook)
    waits = hook["state"] == "waiting" and hook["mode"] == "wait"
    return {
        **row,
        "hook": output.hook_path(hook),
        "type": resource.get("type"),
        "physical_id": resource.get("physical_id"),
        "operation": resource.get("operation"),
        "mode": f"{hook['mode']}, dry run" if hook["dry"] else hook["mode"],
        "opened_at": hook["opened_at"],
        "at_the_deadline": hook["on_timeout"] if waits and hook["deadline"] else "",
        "approved_by": hook["approvals"]["by"],
        "rule": "set by the operator" if hook["by_operator"] else "",
        "requested_by": hook["requested_by"],
        "notified": _subscriber_texts(hook),
        "may_patch": hook["patch"] if waits else [],
        "dependents": resource.get("dependents"),
        "digest": hook["digest"],
    }


def _subscriber_texts(hook: Json) -> list[str]:
    """Each subscriber once: with the state of its delivery, if that is known."""
    known = {(one["channel"], one["target"]) for one in hook["asked"]}
    others = [one for one in hook["told"] if (one["channel"], one["target"]) not in known]
    return [_subscriber_text(one) for one in (*hook["asked"], *others)]


def _subscriber_text(one: Mapping[str, Json]) -> str:
    """``webhook https://gate.example/hook (delivered)``."""
    state = f" ({one['state']})" if "state" in one else ""
    return f"{one['channel']} {one['target']}{state}"


def _section(heading: str, lines: "Iterator[str] | list[str]") -> "list[RenderableType]":
    return ["", styled_text(heading, "bold"), *(styled_text(f"  {plain(one)}") for one in lines)]


def answer_hint(hook: Json) -> str:
    """The command that answers a waiting hook, with each decision that it allows; else empty."""
    if hook["state"] != "waiting" or hook["mode"] != "wait" or not hook["allowed"]:
        return ""
    first, *others = hook["allowed"]
    data = " --data KEY=VALUE" if hook["ask"] else ""
    text = (
        f"{output.answer_title(first)}: headgate hook {first} {quote(output.hook_path(hook))}{data}"
    )
    return f"{text}\nOther answers: {', '.join(others)}" if others else text
