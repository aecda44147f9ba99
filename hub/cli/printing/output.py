"""Tables and lines for people. Formatting only."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hub.cli.printing.renderables import group
from hub.cli.printing.tables import (
    Column,
    Columns,
    DataTable,
    FieldTable,
    deadline_column,
    id_column,
    plain,
    relative_times,
    status_text,
    text_column,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = Any
#: Shown in place of a resource for the whole stack.
STACK = "(stack)"
STACK_FIELDS = ("stack_name", "id", "stack_status", "stack_status_reason", "creation_time",
                "updated_time", "parent", "root", "path", "tags", "timeout_mins",
                "disable_rollback", "pinned")  # fmt: skip
HOOK_COLUMNS: Columns = {
    "stack": "STACK",
    "resource": "RESOURCE",
    "point": "POINT",
    "state": "STATE",
    "approvals": Column("APPROVALS", drop=4),
    "may_answer": "MAY ANSWER",
    "deadline": deadline_column("DEADLINE"),
    "decision": Column("DECISION", drop=3),
    "by": Column("BY", drop=2),
    "id": id_column(),
}
#: Where each hook waits, its state says nothing.
WAITING_HOOK_COLUMNS: Columns = {**HOOK_COLUMNS, "state": Column("STATE", drop=1)}
#: Columns of the waiting hooks of one stack.
WAITING_HOOK = ("resource", "point", "approvals", "may_answer", "deadline", "id")
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


def table(rows: Sequence[Mapping[str, Json]], columns: Columns) -> DataTable:
    """columns: key -> heading, or column."""
    return DataTable(rows, {key: text_column(one) for key, one in columns.items()})


def fields(document: Mapping[str, Json], names: Sequence[str]) -> FieldTable:
    """A line for each of these fields that is not empty."""
    return FieldTable(document, names)


def render_stack(stack: Json, hooks: Sequence[Json] = ()) -> "RenderableType":
    """A stack, with its outputs and resources if the document has them. hooks: waiting ones."""
    parts: list[RenderableType] = [fields(stack, STACK_FIELDS)]
    if hooks:
        columns = {key: HOOK_COLUMNS[key] for key in WAITING_HOOK}
        parts += ["", table([hook_row(one) for one in hooks], columns)]
        parts += ["", *(plain(one) for one in answer_hints(hooks))]
    if stack.get("outputs"):
        output_columns = {"output_key": "OUTPUT", "output_value": "VALUE", "output_error": "ERROR"}
        parts += ["", table(stack["outputs"], output_columns)]
    if stack.get("resources"):
        parts += ["", resources_table(stack["resources"])]
    return group(*parts)


def resources_table(resources: Json, *, nested: bool = False) -> "RenderableType":
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


def node_state(node: Mapping[str, Json]) -> str:
    """The state of a node, with what it waits for, in the words of the dashboard. Pure."""
    state = str(node["state"])
    if state == "waiting":
        return "waiting for dependencies"
    if state != "parked":
        return state
    if node["phase"] != "execute":
        return "waiting for approval"
    if node.get("nested_stack_id"):
        return "waiting for its nested stack"
    return f"waiting until {node['until']}" if node.get("until") else "waiting"


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
        "deadline": (hook["deadline"] or "") if hook["state"] == "waiting" else "",
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
        case "observation-credential-set" | "observation-credential-deleted":
            return str(data.get("application_credential_id", ""))
        case "refused":
            return str(data.get("decision", ""))
        case _:
            return ""


def sentences(
    document: Mapping[str, Json], hooks: Sequence[Json] = (), now: datetime | None = None
) -> list[str]:
    """Why a stack waits, from the response of the API, and how to continue it. hooks: its waiting
    ones. now: also show times relative to it."""
    stack = document["stack"]
    reason = f" ({stack['reason']})" if stack.get("reason") else ""
    first = f"{stack['name']}: {status_text(stack['status'], len(hooks))}{reason}"
    explained = [*document["nodes"], *document.get("unknown", ())]
    found = [one["sentence"] for one in explained]
    if now is not None:
        found = [relative_times(one, now) for one in found]
    lines = [first, *(f"  {one}" for one in [*found, *answer_hints(hooks)])]
    return [plain(line) for line in lines]


def answer_hints(hooks: Sequence[Json]) -> Iterator[str]:
    """The commands with which these waiting hooks are answered."""
    if len(hooks) == 1:
        (hook,) = hooks
        place = f"{hook['root_stack_name']}:{hook['path']}" if hook["path"] else hook_path(hook)
        yield f"To see what changes: headgate hook show {quote(place)}"
        data = " --data KEY=VALUE" if hook["ask"] else ""
        yield f"To approve it: headgate hook continue {quote(place)}{data}"
    elif hooks:
        stack = quote(hooks[0]["root_stack_name"])
        yield f"To see the hooks: headgate hook list --stack {stack}"
        yield f"To approve all of them: headgate hook continue --stack {stack}"
