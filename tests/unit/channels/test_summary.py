"""Summaries of events, and their forms in chats and e-mails."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

import pytest

from channels.chat.slack import MAX_HEADER, slack_message
from channels.chat.teams import teams_message
from channels.email.message import MAX_SUBJECT, email_message
from channels.email.relay import is_email_address
from channels.schemas.event_schemas import SCHEMAS
from channels.summary import MAX_CHANGES, Summary, summarize
from engine.store.records import HookRecord
from tests.unit.channels.test_envelope import (
    ANSWERED,
    EVENT,
    HOOK_ID,
    STACK,
    TIME,
    WAITING,
    hook_at,
    render,
)

BASE = "https://headgate.example"
HOOK_LINK = f"{BASE}/#/demo/inbox/{HOOK_ID}"
STACK_LINK = f"{BASE}/#/demo/stack/web/{STACK}"


def summary_of(kind: str, hook: HookRecord = WAITING) -> Summary:
    return summarize(render(kind, hook), BASE)


def with_notification(**changed: Any) -> HookRecord:
    return replace(WAITING, notification={**WAITING.notification, **changed})


def test_a_waiting_hook_says_what_who_and_until_when() -> None:
    hook = replace(
        WAITING,
        rule={
            "point": "pre-create", "approvals": 2, "answer_by": ["role:dba"],
            "exclude": "requester",
        },
    )  # fmt: skip
    summary = summary_of("headgate.hook.waiting", hook)
    assert summary.title == "web/db: create waits for approval"
    assert dict(summary.facts) == {
        "Stack": "web",
        "Project": "demo",
        "Resource": "db (OS::Heat::None)",
        "Requested by": "ann",
        "Point": "pre-create",
        "Deadline": "2026-01-02 04:04 UTC, then the stack stops",
        "May answer": "role:dba",
        "Excluded": "the requester",
        "Approvals": "0 of 2",
    }
    assert (summary.link, summary.link_text) == (HOOK_LINK, "Review and answer")
    assert summary.changes == ["a: 0 -> 1"]
    assert summary.text == "Waiting for it: web."


def test_a_hook_that_anyone_may_answer_says_so() -> None:
    facts = dict(
        summary_of("headgate.hook.waiting", replace(WAITING, rule={"point": "pre-create"})).facts
    )
    assert facts["May answer"] == "anyone in the project"
    handed = replace(
        WAITING, rule={"point": "pre-create", "answer_by": ["role:dba"]}, assigned="user:ben"
    )
    facts = dict(summary_of("headgate.hook.waiting", handed).facts)
    assert facts["May answer"] == "role:dba, user:ben"
    notifying = replace(WAITING, mode="notify")
    assert "May answer" not in dict(summary_of("headgate.hook.waiting", notifying).facts)


def test_many_changes_and_long_values_are_cut() -> None:
    changes = {f"p{number}": {"from": 1, "to": "x" * 1000} for number in range(MAX_CHANGES + 3)}
    lines = summary_of("headgate.hook.waiting", with_notification(changes=changes)).changes
    assert len(lines) == MAX_CHANGES + 1
    assert lines[-1] == "and 3 more"
    assert all(len(line) < 200 for line in lines)


def test_a_value_that_is_not_known_yet_is_named() -> None:
    hook = with_notification(changes={"a": {"from": 0}})
    assert summary_of("headgate.hook.waiting", hook).changes == ["a: 0 -> (unknown until created)"]


def test_an_answer_says_who_decided_and_why() -> None:
    summary = summary_of("headgate.hook.answered", ANSWERED)
    assert summary.title == "web/db: pre-create answered: continue by dba"
    assert summary.text == "fine"
    assert summary.link == HOOK_LINK


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_every_event_has_a_summary_without_the_token(kind: str) -> None:
    document = render(kind, hook_at(kind))
    summary = summarize(document, BASE)
    assert summary.title and "\n" not in summary.title
    assert summary.link.startswith(BASE)
    token, url = document["data"].get("token"), document["data"].get("signal_url")
    for form in (slack_message, teams_message):
        text = json.dumps(form(summary))
        assert not token or (token not in text and url not in text)


def test_events_of_a_stack_and_of_a_resource_lead_to_the_stack() -> None:
    stack = summary_of("headgate.stack.update.failed")
    resource = summary_of("headgate.resource.update.failed")
    assert stack.title == "web: UPDATE_FAILED"
    assert resource.title == "web/db: update failed"
    assert stack.link == resource.link == STACK_LINK
    assert stack.thread == resource.thread == str(STACK)


SUMMARY = Summary(
    title="a <!channel> @all & <https://evil.example|b> [c](https://evil.example)",
    text="[c](https://evil.example)",
    facts=[("Stack", "<@U1>")],
    changes=["d: 1 -> <b>2</b>"],
    link=HOOK_LINK,
    link_text="Show",
    thread="t",
)


def test_slack_shows_values_as_plain_text() -> None:
    message = slack_message(SUMMARY)
    assert not {"<", "@all", "]("}.intersection(re.findall(r"<|@all|\]\(", message["text"]))
    texts = [block["text"] for block in message["blocks"] if "text" in block]
    fields = message["blocks"][2]["fields"]
    assert {text["type"] for text in texts + fields} == {"plain_text"}
    assert message["blocks"][-1]["elements"][0]["url"] == HOOK_LINK


def test_slack_gets_at_most_what_it_accepts() -> None:
    long = replace(SUMMARY, title="t" * 500, changes=["c" * 200] * 50)
    blocks = slack_message(long)["blocks"]
    assert len(blocks[0]["text"]["text"]) == MAX_HEADER
    assert all(len(block["text"]["text"]) <= 3000 for block in blocks[:4] if "text" in block)


def test_teams_shows_values_in_text_runs_which_read_no_markdown() -> None:
    card = teams_message(SUMMARY)["attachments"][0]["content"]
    assert {element["type"] for element in card["body"]} == {"RichTextBlock"}
    assert card["actions"][0]["url"] == HOOK_LINK


def email_of(summary: Summary) -> EmailMessage:
    message = email_message(
        summary,
        event_id=str(EVENT),
        sender="headgate@example.org",
        recipient="ops@example.org",
        sent_at=TIME,
    )
    parsed = message_from_bytes(message.as_bytes(), policy=SMTP)
    assert isinstance(parsed, EmailMessage)
    return parsed


def test_an_email_has_plain_text_and_escaped_html() -> None:
    message = email_of(SUMMARY)
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None and html is not None
    assert "d: 1 -> <b>2</b>" in plain.get_content()
    assert f"Show: {HOOK_LINK}" in plain.get_content()
    assert "d: 1 -&gt; &lt;b&gt;2&lt;/b&gt;" in html.get_content()
    assert "<b>" not in html.get_content()


def test_an_email_has_the_same_id_at_each_attempt_and_belongs_to_its_thread() -> None:
    first, second = email_of(SUMMARY), email_of(replace(SUMMARY, title="other"))
    assert first["Message-ID"] == second["Message-ID"] == f"<{EVENT}@headgate.example>"
    assert first["References"] == "<t@headgate.example>"
    assert first["Auto-Submitted"] == "auto-generated"


def test_a_title_cannot_add_headers() -> None:
    message = email_of(replace(SUMMARY, title="a\r\nBcc: eve@evil.example\n" + "b" * 500))
    assert message["Bcc"] is None
    assert len(message["Subject"]) == MAX_SUBJECT


@pytest.mark.parametrize("text", ["ann@example.org", "a.b+c@mail.example.org"])
def test_an_address_is_accepted(text: str) -> None:
    assert is_email_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ann",
        "@example.org",
        "ann@",
        "ann@localhost",
        "ann@example.org,bob@example.org",
        "Ann <ann@example.org>",
        "ann@example.org\r\nRCPT TO:<eve@evil.example>",
        "a@b@example.org",
        "ann @example.org",
        "ann@exämple.org",
        f"{'a' * 250}@example.org",
    ],
)
def test_what_is_not_one_address_is_refused(text: str) -> None:
    assert not is_email_address(text)


def test_times_are_shown_in_utc() -> None:
    later = replace(WAITING, deadline=datetime(2026, 1, 2, tzinfo=UTC) + timedelta(days=1))
    assert ("Deadline", "2026-01-03 00:00 UTC, then the stack stops") in summary_of(
        "headgate.hook.waiting", later
    ).facts
