"""Messages of Slack, in Block Kit: https://api.slack.com/reference/block-kit/blocks

Everything that comes from a user is plain text, so that no name or value can mention people or
disguise a link. Programs that know no blocks, such as Mattermost, show `text`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from channels.summary import Summary
from engine.words import Decision, Json

#: Limits of Slack, in characters, and of the number of fields in a section.
MAX_HEADER = 150
MAX_SECTION = 3_000
MAX_FIELDS = 10
#: Of a message, of which two are added when the hook is answered.
MAX_BLOCKS = 50
#: The label, style and confirmation of the button of a decision.
BUTTONS = {
    Decision.CONTINUE: ("Approve", "primary", "The change continues."),
    Decision.REJECT: ("Reject", "danger", "The operation is rejected."),
}
#: In `text`. A space without width separates the characters of a mention and of a Markdown link.
HARMLESS = (
    ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "@\u200b"), ("](", "]\u200b("),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnswerButtons:
    """Buttons that answer a hook. value: see `slack_interaction.ButtonValue`."""

    decisions: Sequence[Decision]
    value: str = field(repr=False)


NO_BUTTONS = AnswerButtons((), "")


def slack_message(summary: Summary, buttons: AnswerButtons = NO_BUTTONS) -> dict[str, Json]:
    blocks: list[Json] = [{"type": "header", "text": _plain_text(summary.title, MAX_HEADER)}]
    if summary.text:
        blocks.append({"type": "section", "text": _plain_text(summary.text, MAX_SECTION)})
    if summary.facts:
        fields = [_plain_text(f"{name}: {value}", 2_000) for name, value in summary.facts]
        blocks.append({"type": "section", "fields": fields[:MAX_FIELDS]})
    blocks += [_item(text, link) for text, link in summary.items]
    if summary.changes:
        blocks.append(
            {"type": "section", "text": _plain_text("\n".join(summary.changes), MAX_SECTION)}
        )
    elements = [_answer_button(one, buttons.value, summary.title) for one in buttons.decisions]
    elements.append(_link_button(summary.link_text, summary.link))
    blocks.append({"type": "actions", "elements": elements})
    return {"text": _escape(f"{summary.title} {summary.link}"), "blocks": blocks}


def answered_message(
    blocks: Sequence[Json], text: str, link: str, *, waits: bool
) -> dict[str, Json]:
    """Replaces the message of a hook. blocks: of that message. text: what was decided. waits: the
    hook needs further answers, so its buttons stay."""
    kept = [one for one in blocks if waits or one.get("type") != "actions"][: MAX_BLOCKS - 2]
    added: list[Json] = [{"type": "section", "text": _plain_text(text, MAX_SECTION)}]
    if not waits:
        added.append({"type": "actions", "elements": [_link_button("Show", link)]})
    return {
        "replace_original": True,
        "text": _escape(f"{text} {link}"),
        "blocks": [*kept, *added],
    }


def personal_message(text: str, link: str) -> dict[str, Json]:
    """Only the user who clicked sees it. link: "": none."""
    blocks: list[Json] = [{"type": "section", "text": _plain_text(text, MAX_SECTION)}]
    if link:
        blocks.append({"type": "actions", "elements": [_link_button("Open Headgate", link)]})
    return {
        "response_type": "ephemeral",
        "replace_original": False,
        "text": _escape(f"{text} {link}".strip()),
        "blocks": blocks,
    }


def _answer_button(decision: Decision, value: str, title: str) -> Json:
    label, style, effect = BUTTONS[decision]
    return {
        "type": "button",
        "action_id": decision.value,
        "text": _plain_text(label, 75),
        "style": style,
        "value": value,
        "confirm": {
            "title": _plain_text(f"{label}?", 100),
            "text": _plain_text(f"{title}. {effect}", 300),
            "confirm": _plain_text(label, 30),
            "deny": _plain_text("Cancel", 30),
        },
    }


def _item(text: str, link: str) -> Json:
    return {
        "type": "section",
        "text": _plain_text(text, MAX_SECTION),
        "accessory": _link_button("Show", link),
    }


def _link_button(text: str, url: str) -> Json:
    return {"type": "button", "text": _plain_text(text, 75), "url": url}


def _plain_text(text: str, limit: int) -> Json:
    shown = text if len(text) <= limit else f"{text[: limit - 3]}..."
    return {"type": "plain_text", "text": shown, "emoji": False}


def _escape(text: str) -> str:
    """Without what begins a mention or a link, also in programs that read Markdown."""
    for special, harmless in HARMLESS:
        text = text.replace(special, harmless)
    return text
