"""A summary as a message of Microsoft Teams, with an Adaptive Card: https://adaptivecards.io

Text runs show text as it is. Other elements read Markdown, in which a value could disguise a link.
"""

from channels.summary import Summary
from engine.words import Json

#: The newest version that Teams shows on all devices.
VERSION = "1.4"


def teams_message(summary: Summary) -> dict[str, Json]:
    body = [_text(summary.title, size="large", weight="bolder")]
    if summary.text:
        body.append(_text(summary.text))
    body += [_name_value(name, value) for name, value in summary.facts]
    body += [_item(text, link) for text, link in summary.items]
    body += [_text(line, fontType="monospace") for line in summary.changes]
    card: dict[str, Json] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": VERSION,
        "fallbackText": summary.title,
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": summary.link_text, "url": summary.link}],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _text(text: str, **style: str) -> Json:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


def _item(text: str, link: str) -> Json:
    open_link = {"type": "Action.OpenUrl", "url": link}
    return {"type": "Container", "items": [_text(text)], "selectAction": open_link}


def _name_value(name: str, value: str) -> Json:
    inlines = [
        {"type": "TextRun", "text": f"{name}: ", "weight": "bolder"},
        {"type": "TextRun", "text": value},
    ]
    return {"type": "RichTextBlock", "spacing": "none", "inlines": inlines}
