"""Tables and lines for people. Formatting only."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from rich.table import Table
from rich.text import Text

Json = Any
STYLE = {
    "COMPLETE": "green",
    "FAILED": "red",
    "STOPPED": "magenta",
    "PROGRESS": "cyan",
    "waiting": "yellow",
    "done": "green",
    "failed": "red",
    "stopped": "magenta",
    "running": "cyan",
    "parked": "yellow",
    "enabled": "green",
    "disabled": "red",
    "delivered": "green",
    "dead": "red",
}
#: What stands for the whole stack, where a resource would be named.
STACK = "(stack)"
#: What may happen to a hook that goes on waiting.
UNDECIDED = ("approved", "progress", "handed-over", "reminder", "escalated", "undeliverable")
MARK = {
    "waiting": "·",
    "ready": "○",
    "running": "▶",
    "parked": "⏸",
    "done": "✔",
    "failed": "✘",
    "stopped": "■",
    "dropped": "-",
}


def styled(word: str) -> Text:
    return Text(word, STYLE.get(word.rpartition("_")[2] or word, ""))


def table(rows: Sequence[Mapping[str, Json]], columns: Mapping[str, str]) -> Table:
    """columns: key -> heading."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in columns.values():
        made.add_column(heading, overflow="fold")
    for row in rows:
        made.add_row(*(styled(_text(row.get(key))) for key in columns))
    return made


def fields(document: Mapping[str, Json], names: Sequence[str]) -> Table:
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for name in names:
        if document.get(name) not in (None, "", [], {}):
            made.add_row(name.replace("_", " "), styled(_text(document[name])))
    return made


def plain(text: str) -> str:
    """Without what would steer the terminal: names and reasons come from others."""
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in text)


def _text(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{plain(str(key))}={_text(item)}" for key, item in value.items())
    return plain(str(value))


def event_line(document: Mapping[str, Json]) -> str:
    """One event as one plain line: time, what, where, why."""
    data = document.get("data") or {}
    kind = str(document["type"]).removeprefix("headgate.")
    stack = data.get("stack") or {}
    where = document.get("subject") or document.get("stackpath") or stack.get("name", "")
    line = f"{document['time'][11:19]}  {kind:<28} {where:<20} {_why(kind, data)}"
    return plain(" ".join(line.splitlines())).rstrip()


def _why(kind: str, data: Mapping[str, Json]) -> str:
    hook = data.get("hook")
    moment = kind.rpartition(".")[2]
    if hook:
        return _of_hook(moment, hook, data.get("said") or {})
    if "delivery" in data:
        error = data["delivery"]["error"]
        return f"{data['event']['type']} to {data['subscription']['target']}" + (
            f": {error}" if error else ""
        )
    if "subscription" in data:
        return f"{data['subscription']['target']}: {data['reason']}"
    said = data.get("resource") or data.get("stack") or {}
    return str(said.get("reason") or "") if moment in ("failed", "stopped") else ""


def _of_hook(moment: str, hook: Mapping[str, Json], said: Mapping[str, Json]) -> str:
    """said: what somebody did, where that has not decided the hook."""
    point = hook["point"]
    if moment == "waiting":
        return f"{point} until {hook['deadline']}, then: {hook['on_timeout']}"
    if moment in UNDECIDED:
        return str(said.get("reason") or point)
    reason = f": {hook['reason']}" if hook.get("reason") else ""
    by = f" by {hook['decided_by']}" if hook.get("decided_by") else ""
    return f"{point} {hook.get('decision') or moment}{by}{reason}"


def stack_in(event: Mapping[str, Json]) -> str:
    """The name of the stack that an event of the Orchestration API is of."""
    href = next((link["href"] for link in event["links"] if link["rel"] == "stack"), "")
    return unquote(href.rpartition("/")[0].rpartition("/")[2])


def named(path: str | None) -> str:
    """A resource by its name; or the stack as a whole, which has none."""
    return plain(path) if path else STACK


def place_of(hook: Mapping[str, Json]) -> str:
    """Where a hook waits, as one may name it: ``web:db:pre-create``, ``web:pre-stack-create``."""
    return ":".join(filter(None, (hook["root_stack_name"], hook["path"], hook["point"])))


def hook_row(hook: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "id": hook["id"],
        "stack": hook["root_stack_name"],
        "resource": named(hook["path"]),
        "point": hook["point"],
        "state": hook["state"],
        "approvals": approvals(hook),
        "may_answer": may_answer(hook),
        "deadline": hook["deadline"],
        "decision": hook.get("decision") or "",
        "by": hook.get("decided_by") or "",
        "reason": hook.get("reason") or "",
    }


def approvals(hook: Mapping[str, Json]) -> str:
    """``1/2``: given and needed; nothing where one answer is enough."""
    said = hook["approvals"]
    return f"{said['given']}/{said['needed']}" if said["needed"] > 1 else ""


def may_answer(hook: Mapping[str, Json]) -> str:
    """Who may answer a hook that waits."""
    if hook["state"] != "waiting" or hook["mode"] != "wait":
        return ""
    people = [hook["assigned"]] if hook["assigned"] else []
    people += hook["answer_by"] or ["anyone"]
    return ", ".join([*people, *([f"not {hook['requested_by']}"] if hook["exclude"] else [])])


def entry_row(entry: Mapping[str, Json]) -> dict[str, Json]:
    """An entry of the audit trail; what it is about stands with what was done."""
    return {**entry, "what": " ".join(filter(None, (entry["kind"], _about(entry))))}


def _about(entry: Mapping[str, Json]) -> str:
    data = entry["data"]
    if not isinstance(data, Mapping):
        return ""
    match entry["kind"]:
        case "handed-over":
            return f"to {data.get('to')}"
        case "progress":
            return f"until {data.get('deadline')}"
        case "breakpoint-added" | "breakpoint-removed":
            point = (data.get("rule") or {}).get("point")
            return ":".join(filter(None, (data.get("at"), point)))
        case "refused":
            return str(data.get("decision", ""))
        case _:
            return ""


def sentences(said: Mapping[str, Json]) -> list[str]:
    """Why a stack does not go on, from the API's answer."""
    stack = said["stack"]
    reason = f" ({stack['reason']})" if stack.get("reason") else ""
    first = f"{stack['name']}: {stack['status']}{reason}"
    return [plain(line) for line in (first, *(f"  {one['sentence']}" for one in said["nodes"]))]
