"""An event in words, for people who read it in a chat or an e-mail. Pure.

The summary of a hook has neither its token nor its signal URL, because everyone who reads the chat
could answer with them. It leads to the dashboard, where an answer needs a right.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from channels.selection import WAITING
from engine.words import ANYONE, DRIFT, Json

#: Maximum number of changes in a summary, and characters of one value.
MAX_CHANGES = 10
MAX_VALUE = 120
#: Operations whose notification has all properties in place of changes.
CREATING = ("create", "replace", "adopt")
#: What happens at the deadline of a hook, by `on_timeout`.
AT_DEADLINE = {
    "stop": "then the stack stops",
    "continue": "then the change continues",
    "reject": "then the operation is rejected",
}


@dataclass(frozen=True, slots=True)
class Summary:
    """title: one line. text: a sentence or more; may be empty. facts: names with values.

    changes: one line for each property. link: the page of the dashboard. link_text: what the reader
    does there. thread: the same for events that belong together, such as those of a hook. items:
    of a digest, texts with links.
    """

    title: str
    text: str
    facts: Sequence[tuple[str, str]]
    changes: Sequence[str]
    link: str
    link_text: str
    thread: str
    items: Sequence[tuple[str, str]] = ()


def summarize(document: Mapping[str, Json], base_url: str) -> Summary:
    """Summarize a CloudEvent. base_url: the address of the server, without a slash at the end."""
    kind, data = document["type"], document["data"]
    if kind == WAITING:
        return _of_waiting_hook(data, base_url)
    if "hook" in data:
        return _of_hook(kind, data, base_url)
    if "resource" in data:
        return _of_resource(kind, data, base_url)
    if kind.startswith("headgate.stack."):
        return _of_stack(data, base_url)
    return _of_other(document, base_url)


def plain_text(summary: Summary) -> str:
    """The text below the title, for readers without markup."""
    parts = [
        summary.text,
        "\n".join(f"{name}: {value}" for name, value in summary.facts),
        "\n".join(f"- {text}\n  {link}" for text, link in summary.items),
        "\n".join(f"  {line}" for line in summary.changes),
        f"{summary.link_text}: {summary.link}",
    ]
    return "\n\n".join(part for part in parts if part)


def short_text(value: Json) -> str:
    """A value in one line: text as it is, other values as JSON."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 3]}..."


def shown_time(text: str) -> str:
    """RFC 3339 -> ``2026-12-01 10:00 UTC``."""
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _of_waiting_hook(data: Mapping[str, Json], base_url: str) -> Summary:
    hook, resource = data["hook"], data.get("resource")
    subject = _subject(data["stack"], resource)
    facts = [("Stack", _stack_name(data["stack"])), ("Project", data["stack"]["project"])]
    if resource:
        facts.append(("Resource", f"{resource['name']} ({resource['type']})"))
    if hook["requested_by"]:
        facts.append(("Requested by", hook["requested_by"]))
    facts += _answer_facts(hook)
    return Summary(
        title=_waiting_title(hook, resource, subject),
        text=_waiting_text(hook, resource),
        facts=facts,
        changes=_changes(data, resource),
        link=_hook_link(data, base_url),
        link_text="Review and answer" if hook["allowed"] else "Show",
        thread=hook["id"],
    )


def _waiting_title(hook: Mapping[str, Json], resource: Json, subject: str) -> str:
    if hook["point"] == DRIFT:
        return f"{subject} differs from its desired state"
    verb = "waits for approval" if hook["allowed"] else "was reached"
    operation = resource["operation"] if resource else None
    return f"{subject}: {operation} {verb}" if operation else f"{subject}: {hook['point']} {verb}"


def _waiting_text(hook: Mapping[str, Json], resource: Json) -> str:
    if resource and resource["drift"]:
        return str(resource["drift"]["reason"] or "")
    if resource and resource["dependents"]:
        return f"Waiting for it: {', '.join(resource['dependents'][:MAX_CHANGES])}."
    return ""


def _answer_facts(hook: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    yield "Point", hook["point"]
    if hook["deadline"]:
        yield "Deadline", f"{shown_time(hook['deadline'])}, {AT_DEADLINE[hook['on_timeout']]}"
    if hook["allowed"]:
        yield "May answer", ", ".join(hook["answer_by"] or [ANYONE])
    if hook["exclude"]:
        yield "Excluded", f"the {hook['exclude']}"
    if hook["approvals"]["needed"] > 1:
        yield "Approvals", f"{hook['approvals']['given']} of {hook['approvals']['needed']}"
    if hook["ask"]:
        yield "Asks for", ", ".join(hook["ask"].get("properties") or ["data"])


def _changes(data: Mapping[str, Json], resource: Json) -> list[str]:
    if not resource:
        lines = [_plan_line(one) for one in data["change"]["plan"] or []]
    elif resource["operation"] in CREATING and not resource["changes"]:
        lines = [f"{name}: {short_text(value)}" for name, value in resource["properties"].items()]
    else:
        lines = [_change_line(name, change) for name, change in resource["changes"].items()]
    hidden = len(lines) - MAX_CHANGES
    return [*lines[:MAX_CHANGES], *([f"and {hidden} more"] if hidden > 0 else [])]


def _plan_line(item: Mapping[str, Json]) -> str:
    return f"{item.get('action', 'change')} {item.get('name', '')}".strip()


def _change_line(name: str, change: Mapping[str, Json]) -> str:
    after = short_text(change["to"]) if "to" in change else "(unknown until created)"
    return (
        f"{name}: {short_text(change['from'])} -> {after}"
        if "from" in change
        else f"{name}: {after}"
    )


def _of_hook(kind: str, data: Mapping[str, Json], base_url: str) -> Summary:
    hook, details = data["hook"], data["details"]
    happened = kind.removeprefix("headgate.hook.").replace("-", " ")
    subject = _subject(data["stack"], data["resource"])
    decided = f": {hook['decision']}" if hook.get("decision") else ""
    by = hook.get("decided_by") or details.get("by")
    return Summary(
        title=f"{subject}: {hook['point']} {happened}{decided}" + (f" by {by}" if by else ""),
        text=hook.get("reason") or details.get("reason") or "",
        facts=[("Stack", _stack_name(data["stack"])), ("Project", data["stack"]["project"])],
        changes=(),
        link=_hook_link(data, base_url),
        link_text="Show",
        thread=hook["id"],
    )


def _of_resource(kind: str, data: Mapping[str, Json], base_url: str) -> Summary:
    resource, stack = data["resource"], data["stack"]
    facts = [
        ("Stack", _stack_name(stack)),
        ("Project", stack["project"]),
        ("Type", str(resource["type"])),
    ]
    if resource["physical_id"]:
        facts.append(("Physical ID", resource["physical_id"]))
    return Summary(
        title=f"{_subject(stack, resource)}: {_event_words(kind)}",
        text=resource["reason"] or "",
        facts=facts,
        changes=(),
        link=_stack_link(stack, base_url),
        link_text="Show",
        thread=stack["id"],
    )


def _of_stack(data: Mapping[str, Json], base_url: str) -> Summary:
    stack = data["stack"]
    return Summary(
        title=f"{_stack_name(stack)}: {stack['action']}_{stack['status']}",
        text=stack["reason"] or "",
        facts=[
            ("Project", stack["project"]),
            *([("Owner", stack["owner"])] if stack["owner"] else []),
            ("Version", str(data["version"])),
        ],
        changes=[f"warning: {short_text(one)}" for one in data["warnings"][:MAX_CHANGES]],
        link=_stack_link(stack, base_url),
        link_text="Show",
        thread=stack["id"],
    )


def _of_other(document: Mapping[str, Json], base_url: str) -> Summary:
    data = document["data"]
    stack = data.get("stack")
    return Summary(
        title=f"Headgate: {_event_words(document['type'])}",
        text=data.get("reason") or "",
        facts=[("Project", stack["project"])] if stack else [],
        changes=(),
        link=_stack_link(stack, base_url) if stack else base_url,
        link_text="Show",
        thread=document["source"],
    )


def _event_words(kind: str) -> str:
    """``headgate.resource.update.failed`` -> ``update failed``."""
    return " ".join(kind.split(".")[2:]).replace("-", " ") or kind


def _stack_name(stack: Mapping[str, Json]) -> str:
    """The name of the root stack, with the path to a nested one."""
    path = stack["path"]
    return f"{stack['root']['name']}/{path}" if path else stack["name"]


def _subject(stack: Mapping[str, Json], resource: Json) -> str:
    return f"{_stack_name(stack)}/{resource['name']}" if resource else _stack_name(stack)


def _hook_link(data: Mapping[str, Json], base_url: str) -> str:
    return _page(base_url, data["stack"]["project"], "inbox", data["hook"]["id"])


def inbox_link(base_url: str, project: str) -> str:
    return _page(base_url, project, "inbox")


def _stack_link(stack: Mapping[str, Json], base_url: str) -> str:
    return _page(base_url, stack["project"], "stack", stack["name"], stack["id"])


def _page(base_url: str, *parts: str) -> str:
    return f"{base_url}/#/{'/'.join(quote(part, safe='') for part in parts)}"
