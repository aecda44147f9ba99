"""The output of headgate hook show for people."""

import io
from typing import Any

import pytest
from rich.console import Console

from hub.cli.commands.hook import no_longer_waits
from hub.cli.printing import hook_output, output

ROOT = "11111111-0000-4000-8000-000000000001"
HOOK: dict[str, Any] = {
    "id": "11111111-2222-3333-4444-555555555555",
    "root_stack_name": "web",
    "path": "db",
    "point": "pre-update",
    "mode": "wait",
    "state": "waiting",
    "opened_at": "2026-11-21T18:16:36Z",
    "root_stack_id": ROOT,
    "deadline": "2026-11-21T20:16:36Z",
    "on_timeout": "stop",
    "allowed": ["continue", "reject"],
    "digest": "d1",
    "approvals": {"needed": 2, "given": 1, "by": ["ann"]},
    "answer_by": ["role:dba"],
    "exclude": "requester",
    "ask": {"type": "object", "required": ["ticket"]},
    "patch": ["size"],
    "dry": False,
    "by_operator": True,
    "requested_by": "joe",
    "assigned": None,
    "answers": {},
    "asked": [{"channel": "amqp", "target": "changes", "state": "pending"}],
    "told": [{"channel": "webhook", "target": "https://gate.example/hook"}],
    "resource": {
        "type": "Acme::Database",
        "physical_id": "db-1",
        "operation": "update",
        "properties": {"size": 20, "name": "main"},
        "changes": {"size": {"from": 10, "to": 20}},
        "dependents": ["app"],
        "drift": {"status": "changed"},
    },
}


def shown(hook: dict[str, Any], width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(hook_output.render(hook), markup=False, soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_subscriber_with_a_delivery_is_shown_once() -> None:
    delivery = HOOK["told"][0] | {"state": "delivered"}
    (line,) = (one for one in shown(HOOK | {"asked": [delivery]}) if one.startswith("notified"))
    assert line.split() == ["notified", "webhook", "https://gate.example/hook", "(delivered)"]


def test_what_an_approver_needs_is_shown_in_sections() -> None:
    lines = shown(HOOK)
    words = [" ".join(line.split()) for line in lines]
    for line in (
        "hook web:db:pre-update", "type Acme::Database", "physical id db-1", "operation update",
        "rule set by the operator", "at the deadline stop", "approvals 1/2", "approved by ann",
        "may answer role:dba, not joe", "requested by joe", "may patch size", "dependents app",
        "notified amqp changes (pending), webhook https://gate.example/hook",
        "digest d1",
        f"id {HOOK['id']}",
    ):  # fmt: skip
        assert line in words, lines
    assert any(line.startswith("deadline 2026-11-21T20:16:36Z (overdue)") for line in words)
    text = "\n".join(lines)
    for section in (
        "CHANGES\n  size: 10 -> 20\n",
        'OTHER PROPERTIES\n  name: "main"\n',
        "DRIFT\n  status: changed\n",
        "ANSWER DATA, with --data KEY=VALUE\n  type: object\n  required:\n  - ticket\n",
        "To approve it: headgate hook continue web:db:pre-update --data KEY=VALUE\n"
        "Other answers: reject",
    ):
        assert section in text


@pytest.mark.parametrize(
    "state", [{"state": "answered", "decision": "continue", "decided_by": "ann"}, {"mode": "stop"}]
)
def test_a_hook_that_does_not_wait_has_no_deadline_and_no_command(state: dict[str, Any]) -> None:
    text = "\n".join(shown(HOOK | state | {"deadline": None}))
    assert "deadline" not in text and "To approve" not in text and "may patch" not in text


def test_a_hook_of_the_whole_stack_and_names_of_others_are_printed_safely() -> None:
    hook = HOOK | {"path": "", "resource": None, "requested_by": "\x1b[31m", "point": "pre-x y"}
    text = "\n".join(shown(hook))
    assert "\x1b" not in text and "headgate hook continue 'web:pre-x y'" in text


def test_a_waiting_hook_is_named_with_the_commands_that_show_and_approve_it() -> None:
    assert list(output.answer_hints([], "s")) == []
    assert list(output.answer_hints([HOOK], ROOT)) == [
        "To see what changes: headgate hook show web:db",
        "To approve it: headgate hook continue web:db --data KEY=VALUE",
    ]
    (show, approve) = output.answer_hints([HOOK | {"path": "", "ask": None}], ROOT)
    assert show.endswith(" web:pre-update") and approve.endswith(" web:pre-update")
    (_, approve) = output.answer_hints([HOOK | {"ask": None}], ROOT)
    assert approve == "To approve it: headgate hook continue web:db"
    (show, approve) = output.answer_hints([HOOK, HOOK], ROOT)
    assert show.endswith("hook list --stack web") and approve.endswith("continue --stack web")


def drifted(path: str = "db", state: str = "changed", *paths: str) -> dict[str, Any]:
    drift = {"state": state, "differences": [{"path": one, "observed": 1} for one in paths]}
    return HOOK | {"point": "drift", "ask": None, "path": path, "resource": {"drift": drift}}


def test_a_hook_about_drift_is_named_with_the_commands_that_answer_it() -> None:
    assert list(output.answer_hints([drifted()], ROOT)) == [
        "To see the drift: headgate hook show web:db:drift",
        "To repair the resource: headgate hook repair web:db:drift",
        "To adopt the observed values: headgate hook adopt web:db:drift",
        "To leave its drift for a time: headgate hook ignore web:db:drift --for 2h",
        "To leave this drift as it is: headgate hook reject web:db:drift",
    ]
    removed = drifted("db", "changed", "$.size", "$.name")
    removed["resource"]["drift"]["differences"][1]["observed"] = None
    for hook in (drifted("db", "missing"), removed):
        assert not any(" adopt " in one for one in output.answer_hints([hook], ROOT))


def test_several_hooks_about_drift_are_named_with_what_differs_and_their_commands() -> None:
    hooks = [drifted("a", "changed", "$.size", "$.name", "$.tags"), drifted("web db", "missing")]
    assert list(output.answer_hints(hooks, ROOT)) == [
        "To answer web:a:drift (changed: $.size, $.name and 1 more): headgate hook repair"
        " web:a:drift; other answers: adopt, ignore --for 2h, reject",
        "To answer web:web db:drift (missing): headgate hook repair 'web:web db:drift';"
        " other answers: ignore --for 2h, reject",
        "To repair all 2: headgate hook repair --stack web --point drift",
        "To leave the drift of all for a time: headgate hook ignore --stack web --point drift"
        " --for 2h",
    ]


def test_many_hooks_about_drift_are_named_by_a_few_lines() -> None:
    hints = list(output.answer_hints([drifted(f"r{number}") for number in range(300)], ROOT))
    assert len(hints) == 8
    assert hints[5:7] == [
        "To see the 295 others: headgate hook list --stack web --point drift",
        "To repair all 300: headgate hook repair --stack web --point drift",
    ]
    stack = {"id": ROOT, "name": "web", "status": "CREATE_COMPLETE"}
    found = [{"sentence": f"r{number} has differed."} for number in range(300)]
    document = {"stack": stack, "nodes": [], "drift": found}
    lines = output.sentences(document)
    assert len(lines) == 7
    assert lines[-1] == "  295 more resources have drift that waits for an answer."
    lines = output.sentences({**document, "drift": found[:6]})
    assert lines[-1] == "  1 more resource has drift that waits for an answer."


def test_commands_for_all_hooks_of_a_nested_stack_name_that_stack() -> None:
    nested = "22222222-2222-4222-8222-222222222222"
    hints = [*output.answer_hints([HOOK, HOOK, drifted("a"), drifted("b")], nested)]
    every = [one for one in hints if " --stack " in one]
    assert len(every) == 4 and all(f" --stack {nested}" in one for one in every)


def test_drift_and_a_hook_of_a_change_each_have_their_commands() -> None:
    assert list(output.answer_hints([drifted(), HOOK], ROOT))[:3] == [
        "To see what changes: headgate hook show web:db",
        "To approve it: headgate hook continue web:db --data KEY=VALUE",
        "To see the drift: headgate hook show web:db:drift",
    ]
    (_, approve, *_) = output.answer_hints([drifted(), HOOK, HOOK], ROOT)
    assert approve == (
        "To approve all of them, and repair all drift: headgate hook continue --stack web"
    )


def test_a_hook_that_is_answered_is_named_with_its_answer() -> None:
    answered = HOOK | {"state": "answered", "decision": "reject", "decided_by": "ann"}
    text = no_longer_waits(answered)
    assert text.startswith("web:db:pre-update no longer waits: ann answered with reject. ")
    assert "`headgate hook show 11111111`" in text
    assert "it is superseded. " in no_longer_waits(HOOK | {"state": "superseded"})
