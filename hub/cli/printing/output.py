"""Tables and lines for people. Formatting only."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from engine.words import ANYONE, DRIFT, Decision, ObservedState
from hub.cli.continuing_commands import continuing_hints
from hub.cli.printing.renderables import group, wrapped_text
from hub.cli.printing.tables import (
    OVERDUE,
    Column,
    Columns,
    Content,
    DataTable,
    FieldTable,
    id_column,
    plain,
    relative_times,
    status_column,
    status_text,
    text_column,
    time_left,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = Any
#: Shown in place of a resource for the whole stack.
STACK = "(stack)"
STACK_FIELDS = ("stack_name", "id", "stack_status", "stack_status_reason", "creation_time",
                "updated_time", "parent", "root", "path", "tags", "timeout_mins",
                "rollback", "pinned")  # fmt: skip
HOOK_COLUMNS: Columns = {
    "stack": "STACK",
    "resource": "RESOURCE",
    "point": "POINT",
    "state": "STATE",
    "approvals": Column("APPROVALS", drop=4),
    "may_answer": Column("MAY ANSWER", drop=5),
    "deadline": Column("DEADLINE", Content.DEADLINE, drop=6),
    "decision": Column("DECISION", drop=3),
    "by": Column("BY", drop=2),
    "id": id_column(),
}
#: Where each hook waits, its state says nothing.
WAITING_HOOK_COLUMNS: Columns = {**HOOK_COLUMNS, "state": Column("STATE", drop=1)}
#: Columns of the waiting hooks of one stack.
WAITING_HOOK = ("resource", "point", "approvals", "may_answer", "deadline", "id")
#: Hooks about drift whose commands and sentences are printed, and paths of one that are named.
MAX_DRIFT = 5
MAX_PATHS = 2
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


def render_stack(
    stack: Json, hooks: Sequence[Json] = (), drift: Sequence[str] = ()
) -> "RenderableType":
    """A stack, with its outputs and resources if the document has them. hooks: waiting ones. drift:
    sentences."""
    rollback = {True: "off", False: "on"}.get(stack.get("disable_rollback"), "")
    parts: list[RenderableType] = [fields({**stack, "rollback": rollback}, STACK_FIELDS)]
    if hints := continuing_lines(stack):
        parts += ["", *(plain(one) for one in hints)]
    if drift:
        parts += ["", *(wrapped_text(plain(one)) for one in drift)]
    if hooks:
        columns = {key: HOOK_COLUMNS[key] for key in WAITING_HOOK}
        parts += ["", table([hook_row(one) for one in hooks], columns)]
        parts += ["", *(plain(one) for one in answer_hints(hooks, stack["id"]))]
    if outputs := list(_output_rows(stack)):
        output_columns = {"output_key": "OUTPUT", "output_value": "VALUE", "output_error": "ERROR"}
        parts += ["", table(outputs, output_columns)]
    if stack.get("resources"):
        parts += ["", resources_table(stack["resources"])]
    return group(*parts)


def _output_rows(stack: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """The outputs; none of a deleted stack. Before the action completes, they may lack a value."""
    status = str(stack["stack_status"])
    if status == "DELETE_COMPLETE":
        return
    for one in stack.get("outputs") or ():
        unknown = one.get("output_value") is None and not one.get("output_error")
        if unknown and not status.endswith("_COMPLETE"):
            yield {**one, "output_value": "not known yet"}
        else:
            yield one


def continuing_lines(stack: Mapping[str, Json]) -> list[str]:
    """The commands that continue a stack that has stopped or failed; a nested one has none."""
    if stack.get("root"):
        return []
    return continuing_hints(stack["stack_status"], stack.get("stack_name") or stack["id"])


def resources_table(resources: Json, *, nested: bool = False) -> "RenderableType":
    """nested: whether there are resources of nested stacks."""
    columns: Columns = {
        "resource_name": "RESOURCE",
        "resource_type": Column("TYPE", drop=2),
        "resource_status": status_column(),
        "physical_resource_id": Column("PHYSICAL ID", drop=1),
    }
    columns = {**columns, "parent_resource": "PARENT"} if nested else columns
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


def node_state(node: Mapping[str, Json], now: datetime | None = None) -> str:
    """The state of a node, with what it waits for, in the words of the dashboard. now: show times
    relative to it. Pure."""
    state = str(node["state"])
    if state == "waiting":
        return "waiting for dependencies"
    if state != "parked":
        return state
    if node["phase"] != "execute":
        return "waiting for approval"
    if node.get("nested_stack_id"):
        return "waiting for its nested stack"
    until = node.get("until")
    if until and now is not None:
        left = time_left(until, now)
        return "waiting" if left == OVERDUE else f"waiting, {left}"
    return f"waiting until {until}" if until else "waiting"


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
    people += hook["answer_by"] or [ANYONE]
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
    document: Mapping[str, Json],
    hooks: Sequence[Json] = (),
    now: datetime | None = None,
    commands: Sequence[str] = (),
) -> list[str]:
    """Why a stack waits, from the response of the API, and how to continue it. hooks: its waiting
    ones. now: also show times relative to it. commands: see `continuing_lines`."""
    stack = document["stack"]
    reason = f" ({stack['reason']})" if stack.get("reason") else ""
    first = f"{stack['name']}: {status_text(stack['status'], len(hooks))}{reason}"
    found = [*_sentences_of(document, "nodes"), *_drift_sentences(document)]
    found += unrepaired_sentences(document)
    found += [*_sentences_of(document, "unknown"), *_sentences_of(document, "paused")]
    if now is not None:
        found = [relative_times(one, now) for one in found]
    hints = answer_hints(hooks, stack["id"])
    lines = [first, *(f"  {one}" for one in [*found, *hints, *commands])]
    return [plain(line) for line in lines]


def _sentences_of(document: Mapping[str, Json], part: str) -> list[str]:
    return [one["sentence"] for one in document.get(part, ())]


def _drift_sentences(document: Mapping[str, Json]) -> list[str]:
    """Those about the first hooks that wait, and the number of the others."""
    found = _sentences_of(document, DRIFT)
    more = len(found) - MAX_DRIFT
    if more <= 0:
        return found
    resources = "1 more resource has" if more == 1 else f"{more} more resources have"
    return [*found[:MAX_DRIFT], f"{resources} drift that waits for an answer."]


def unrepaired_sentences(document: Mapping[str, Json]) -> list[str]:
    """Those about drift that nothing repairs, with the command that shows it. document: from the
    response of the API about why a stack waits."""
    command = f"headgate stack drift {quote(document['stack']['name'])}"
    return [f"{one} To see the drift: {command}" for one in _sentences_of(document, "unrepaired")]


def answer_hints(hooks: Sequence[Json], stack_id: str) -> Iterator[str]:
    """The commands with which the waiting hooks of a stack and its nested stacks are answered."""
    if not hooks:
        return
    first = hooks[0]
    # Other hooks of the root stack may wait, too.
    is_root = first["root_stack_id"] == stack_id
    stack = quote(first["root_stack_name"]) if is_root else stack_id
    drifted = [one for one in hooks if one["point"] == DRIFT]
    of_nodes = [one for one in hooks if one["point"] != DRIFT]
    yield from _approval_hints(of_nodes, stack, also_repairs=bool(drifted))
    if len(drifted) == 1:
        yield from _drift_hints(drifted[0])
    elif drifted:
        yield from _bulk_drift_hints(drifted, stack)


def _approval_hints(hooks: Sequence[Json], stack: str, *, also_repairs: bool) -> Iterator[str]:
    """hooks: of nodes. also_repairs: whether the stack has waiting hooks about drift, too."""
    if len(hooks) == 1:
        (hook,) = hooks
        place = quote(_hook_place(hook))
        yield f"To see what changes: headgate hook show {place}"
        data = " --data KEY=VALUE" if hook["ask"] else ""
        yield f"{answer_title(Decision.CONTINUE)}: headgate hook continue {place}{data}"
    elif hooks:
        yield f"To see the hooks: headgate hook list --stack {stack}"
        also = ", and repair all drift" if also_repairs else ""
        yield f"To approve all of them{also}: headgate hook continue --stack {stack}"


def _hook_place(hook: Mapping[str, Json]) -> str:
    """``web:db``; of a hook of the whole stack ``web:pre-stack-create``."""
    return f"{hook['root_stack_name']}:{hook['path']}" if hook["path"] else hook_path(hook)


def answer_title(decision: str) -> str:
    """What an answer does, before its command."""
    match decision:
        case Decision.CONTINUE:
            return "To approve it"
        case Decision.REPAIR:
            return "To repair the resource"
        case _:
            return "To answer it"


def _drift_hints(hook: Mapping[str, Json]) -> Iterator[str]:
    # Another hook of the resource may wait, too.
    place = quote(hook_path(hook))
    yield f"To see the drift: headgate hook show {place}"
    yield f"{answer_title(Decision.REPAIR)}: headgate hook repair {place}"
    if _is_adoptable(hook):
        yield f"To adopt the observed values: headgate hook adopt {place}"
    yield f"To leave its drift for a time: headgate hook ignore {place} --for 2h"
    yield f"To leave this drift as it is: headgate hook reject {place}"


def _bulk_drift_hints(hooks: Sequence[Json], stack: str) -> Iterator[str]:
    """What differs, and how to answer each of the first hooks; then how to answer all."""
    for hook in hooks[:MAX_DRIFT]:
        others = ["adopt"] if _is_adoptable(hook) else []
        others += ["ignore --for 2h", "reject"]
        place = hook_path(hook)
        yield (
            f"To answer {place}{_drift_summary(hook)}: headgate hook repair {quote(place)}; "
            f"other answers: {', '.join(others)}"
        )
    every = f"--stack {stack} --point {DRIFT}"
    if len(hooks) > MAX_DRIFT:
        yield f"To see the {len(hooks) - MAX_DRIFT} others: headgate hook list {every}"
    yield f"To repair all {len(hooks)}: headgate hook repair {every}"
    yield f"To leave the drift of all for a time: headgate hook ignore {every} --for 2h"


def _drift_of(hook: Mapping[str, Json]) -> Mapping[str, Json]:
    """Empty: the notification says nothing about it."""
    return (hook["resource"] or {}).get(DRIFT) or {}


def _drift_state(hook: Mapping[str, Json]) -> str:
    return str(_drift_of(hook).get("state", ""))


def _is_adoptable(hook: Mapping[str, Json]) -> bool:
    """Whether it has values that can be adopted, as far as the hook shows it."""
    drift = _drift_of(hook)
    absent = any(one["observed"] is None for one in drift.get("differences", ()))
    return drift.get("state") == ObservedState.CHANGED and not absent


def _drift_summary(hook: Mapping[str, Json]) -> str:
    """`` (changed: $.size, $.name and 3 more)``."""
    differences = [str(one["path"]) for one in _drift_of(hook).get("differences", ())]
    more = len(differences) - MAX_PATHS
    paths = ", ".join(differences[:MAX_PATHS]) + (f" and {more} more" if more > 0 else "")
    state = _drift_state(hook)
    return f" ({state}{f': {paths}' if paths else ''})" if state else ""
