"""Tables and lines for people. Formatting only."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import orjson
import yaml
from rich.console import Group, RenderableType
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
#: Shown in place of a resource for the whole stack.
STACK = "(stack)"
STACK_FIELDS = ("stack_name", "id", "stack_status", "stack_status_reason", "creation_time",
                "updated_time", "parent", "root", "path", "tags", "timeout_mins",
                "disable_rollback", "pinned")  # fmt: skip
#: Events of a hook that still waits.
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


def format_json(value: Json) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def format_yaml(value: Json) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()


def style(word: str) -> Text:
    """A status or state in its color."""
    return Text(word, STYLE.get(word.rpartition("_")[2] or word, ""))


def table(rows: Sequence[Mapping[str, Json]], columns: Mapping[str, str]) -> Table:
    """columns: key -> heading."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in columns.values():
        result.add_column(heading, overflow="fold")
    for row in rows:
        result.add_row(*(style(_text(row.get(key))) for key in columns))
    return result


def fields(document: Mapping[str, Json], names: Sequence[str]) -> Table:
    """A line for each of these fields that is not empty."""
    result = Table(box=None, pad_edge=False, show_header=False)
    result.add_column(style="bold")
    result.add_column(overflow="fold")
    for name in names:
        if document.get(name) not in (None, "", [], {}):
            result.add_row(name.replace("_", " "), style(_text(document[name])))
    return result


def plain(text: str) -> str:
    """Replace control characters, because names and reasons can come from other users."""
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in text)


def _text(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{plain(str(key))}={_text(item)}" for key, item in value.items())
    return plain(str(value))


def render_stack(stack: Json) -> RenderableType:
    """A stack, with its outputs and resources if the document has them."""
    parts: list[RenderableType] = [fields(stack, STACK_FIELDS)]
    if stack.get("outputs"):
        columns = {"output_key": "OUTPUT", "output_value": "VALUE", "output_error": "ERROR"}
        parts += ["", table(stack["outputs"], columns)]
    if stack.get("resources"):
        parts += ["", resources_table(stack["resources"])]
    return Group(*parts)


def resources_table(resources: Json, *, nested: bool = False) -> RenderableType:
    """nested: whether there are resources of nested stacks."""
    columns = {"resource_name": "RESOURCE", "resource_type": "TYPE",
               "resource_status": "STATUS", "physical_resource_id": "PHYSICAL ID"}  # fmt: skip
    columns |= {"parent_resource": "PARENT"} if nested else {}
    return table([with_own_names(one) for one in resources], columns)


def with_own_names(document: Mapping[str, Json]) -> dict[str, Json]:
    """A resource or event of the Orchestration API with the names in the template: `web["a"]` for
    `web-a`."""
    own = {name: document.get(f"headgate_{name}") for name in ("resource_name", "parent_resource")}
    return {**document, **{name: value for name, value in own.items() if value is not None}}


def event_line(document: Mapping[str, Json]) -> str:
    """An event as one line: time, type, place and reason."""
    data = document.get("data") or {}
    kind = str(document["type"]).removeprefix("headgate.")
    stack = data.get("stack") or {}
    place = document.get("subject") or document.get("stackpath") or stack.get("name", "")
    line = f"{document['time'][11:19]}  {kind:<28} {place:<20} {_event_reason(kind, data)}"
    return plain(" ".join(line.splitlines())).rstrip()


def _event_reason(kind: str, data: Mapping[str, Json]) -> str:
    hook = data.get("hook")
    moment = kind.rpartition(".")[2]
    if hook:
        return _hook_reason(moment, hook, data.get("details") or {})
    if "delivery" in data:
        error = data["delivery"]["error"]
        return f"{data['event']['type']} to {data['subscription']['target']}" + (
            f": {error}" if error else ""
        )
    if "subscription" in data:
        return f"{data['subscription']['target']}: {data['reason']}"
    source = data.get("resource") or data.get("stack") or {}
    return str(source.get("reason") or "") if moment in ("failed", "stopped") else ""


def _hook_reason(moment: str, hook: Mapping[str, Json], details: Mapping[str, Json]) -> str:
    """details: of an event that does not decide the hook."""
    point = hook["point"]
    if moment == "waiting":
        if hook["deadline"] is None:
            return f"{point}: waits until it is answered, or the drift ends"
        return f"{point} until {hook['deadline']}, then: {hook['on_timeout']}"
    if moment in UNDECIDED:
        return str(details.get("reason") or point)
    reason = f": {hook['reason']}" if hook.get("reason") else ""
    by = f" by {hook['decided_by']}" if hook.get("decided_by") else ""
    return f"{point} {hook.get('decision') or moment}{by}{reason}"


def stack_of_event(event: Mapping[str, Json]) -> str:
    """The name of the stack of an event of the Orchestration API."""
    href = next((link["href"] for link in event["links"] if link["rel"] == "stack"), "")
    return unquote(href.rpartition("/")[0].rpartition("/")[2])


def label(path: str | None) -> str:
    """The path of a resource, or a label for the whole stack."""
    return plain(path) if path else STACK


def hook_path(hook: Mapping[str, Json]) -> str:
    """A hook as an argument selects it: ``web:db:pre-create``, ``web:pre-stack-create``."""
    return ":".join(filter(None, (hook["root_stack_name"], hook["path"], hook["point"])))


def hook_row(hook: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "id": hook["id"],
        "stack": hook["root_stack_name"],
        "resource": label(hook["path"]),
        "point": hook["point"],
        "state": hook["state"],
        "approvals": approvals(hook),
        "may_answer": may_answer(hook),
        "deadline": hook["deadline"] or "",
        "decision": hook.get("decision") or "",
        "by": hook.get("decided_by") or "",
        "reason": hook.get("reason") or "",
    }


def approvals(hook: Mapping[str, Json]) -> str:
    """``1/2``: approvals so far and required; empty if one answer is enough."""
    count = hook["approvals"]
    return f"{count['given']}/{count['needed']}" if count["needed"] > 1 else ""


def may_answer(hook: Mapping[str, Json]) -> str:
    """Who may answer a waiting hook."""
    if hook["state"] != "waiting" or hook["mode"] != "wait":
        return ""
    people = [hook["assigned"]] if hook["assigned"] else []
    people += hook["answer_by"] or ["anyone"]
    return ", ".join([*people, *([f"not {hook['requested_by']}"] if hook["exclude"] else [])])


def entry_row(entry: Mapping[str, Json]) -> dict[str, Json]:
    """An entry of the audit log. what: its kind and subject."""
    return {**entry, "what": " ".join(filter(None, (entry["kind"], _subject(entry))))}


def _subject(entry: Mapping[str, Json]) -> str:
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


def sentences(document: Mapping[str, Json]) -> list[str]:
    """Why a stack waits, from the response of the API."""
    stack = document["stack"]
    reason = f" ({stack['reason']})" if stack.get("reason") else ""
    first = f"{stack['name']}: {stack['status']}{reason}"
    explained = [*document["nodes"], *document.get("unknown", ()), *document.get("paused", ())]
    lines = [first, *(f"  {one['sentence']}" for one in explained)]
    return [plain(line) for line in lines]
