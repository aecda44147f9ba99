"""A summary as an e-mail, in plain text and HTML. Pure."""

from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from html import escape
from urllib.parse import urlsplit

from channels.summary import Summary, plain_text

#: Maximum characters of a subject.
MAX_SUBJECT = 200


def email_message(
    summary: Summary, *, event_id: str, sender: str, recipient: str, sent_at: datetime
) -> EmailMessage:
    """event_id: makes the message ID, which is the same at each attempt, so that mail servers can
    drop a repeated one. Messages of a thread refer to the same ID."""
    host = urlsplit(summary.link).hostname or "headgate"
    message = EmailMessage(policy=SMTP)
    message["Subject"] = " ".join(summary.title.split())[:MAX_SUBJECT]
    message["From"] = sender
    message["To"] = recipient
    message["Date"] = sent_at
    message["Message-ID"] = f"<{event_id}@{host}>"
    message["References"] = f"<{_local_part(summary.thread)}@{host}>"
    # No answers by programs that are out of office: RFC 3834.
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(f"{summary.title}\n\n{plain_text(summary)}\n")
    message.add_alternative(_html(summary), subtype="html")
    return message


def _local_part(thread: str) -> str:
    return "".join(one if one.isalnum() or one in "-." else "-" for one in thread).strip("-.")


def _html(summary: Summary) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in summary.facts
    )
    items = "".join(
        f'<li><a href="{escape(link)}">{escape(text)}</a></li>' for text, link in summary.items
    )
    parts = [
        f"<h2>{escape(summary.title)}</h2>",
        f"<p>{escape(summary.text)}</p>" if summary.text else "",
        f"<table>{rows}</table>" if rows else "",
        f"<ul>{items}</ul>" if items else "",
        f"<pre>{escape(chr(10).join(summary.changes))}</pre>" if summary.changes else "",
        f'<p><a href="{escape(summary.link)}">{escape(summary.link_text)}</a></p>',
    ]
    return "".join(parts)
