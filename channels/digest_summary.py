"""A digest in words: the notifications of a period in one message. Pure."""

from collections.abc import Sequence

from channels.contract import EventMessage
from channels.selection import WAITING
from channels.summary import Summary, inbox_link, summarize

#: Notifications that a digest lists.
MAX_ITEMS = 20
DECIDED = "(decided)"


def summarize_digest(messages: Sequence[EventMessage], base_url: str) -> Summary:
    """Hooks that wait come first. messages: at least one, in the order of their events; a hook
    notification that is not `waiting` was decided meanwhile."""
    ordered = sorted(messages, key=lambda one: not one.waiting)
    items = [_item(one, base_url) for one in ordered[:MAX_ITEMS]]
    waiting = sum(one.waiting for one in messages)
    count = len(messages)
    title = f"{count} notification{'s' if count > 1 else ''}"
    if waiting:
        title += f", {waiting} wait{'s' if waiting == 1 else ''} for an answer"
    more = count - len(items)
    projects = {_project(one) for one in messages}
    project = projects.pop() if len(projects) == 1 else ""
    return Summary(
        title=title,
        text="",
        facts=[("Project", project)] if project else [],
        changes=[f"and {more} more"] if more else [],
        link=inbox_link(base_url, project) if project else base_url,
        link_text="Open Headgate",
        thread=messages[0].id,
        items=items,
    )


def _item(message: EventMessage, base_url: str) -> tuple[str, str]:
    """The text and the link of a notification."""
    summary = summarize(message.document, base_url)
    text = summary.title
    if message.type == WAITING:
        deadline = dict(summary.facts).get("Deadline")
        if not message.waiting:
            text = f"{text} {DECIDED}"
        elif deadline:
            text = f"{text}, until {deadline}"
    return text, summary.link


def _project(message: EventMessage) -> str:
    stack = message.document["data"].get("stack") or {}
    return str(stack.get("project") or "")
