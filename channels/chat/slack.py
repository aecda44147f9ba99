"""A summary as a message of Slack, in Block Kit: https://api.slack.com/reference/block-kit/blocks

Everything that comes from a user is plain text, so that no name or value can mention people or
disguise a link. Programs that know no blocks, such as Mattermost, show `text`.
"""

from channels.summary import Summary
from engine.words import Json

#: Limits of Slack, in characters, and of the number of fields in a section.
MAX_HEADER = 150
MAX_SECTION = 3_000
MAX_FIELDS = 10
#: In `text`. A space without width separates the characters of a mention and of a Markdown link.
HARMLESS = (
    ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "@\u200b"), ("](", "]\u200b("),
)  # fmt: skip


def slack_message(summary: Summary) -> dict[str, Json]:
    blocks: list[Json] = [{"type": "header", "text": _plain_text(summary.title, MAX_HEADER)}]
    if summary.text:
        blocks.append({"type": "section", "text": _plain_text(summary.text, MAX_SECTION)})
    if summary.facts:
        fields = [_plain_text(f"{name}: {value}", 2_000) for name, value in summary.facts]
        blocks.append({"type": "section", "fields": fields[:MAX_FIELDS]})
    if summary.changes:
        blocks.append(
            {"type": "section", "text": _plain_text("\n".join(summary.changes), MAX_SECTION)}
        )
    button = {"type": "button", "text": _plain_text(summary.link_text, 75), "url": summary.link}
    blocks.append({"type": "actions", "elements": [button]})
    return {"text": _escape(f"{summary.title} {summary.link}"), "blocks": blocks}


def _plain_text(text: str, limit: int) -> Json:
    shown = text if len(text) <= limit else f"{text[: limit - 3]}..."
    return {"type": "plain_text", "text": shown, "emoji": False}


def _escape(text: str) -> str:
    """Without what begins a mention or a link, also in programs that read Markdown."""
    for special, harmless in HARMLESS:
        text = text.replace(special, harmless)
    return text
