"""Tables and lines of the text output."""

import io
from typing import Any

import pytest
import typer
from rich.console import Console, RenderableType

from headgate.errors import response_error
from hub.auth.keystone import KEYSTONE_REMEDY
from hub.auth.token_authenticator import CREDENTIAL_REMEDY, NEW_CREDENTIAL_REMEDY
from hub.cli.connection.client import ApiClient
from hub.cli.context import COMMANDS_OF_ROUTES, error_text, print_renderable
from hub.cli.main import app
from hub.cli.messages import complain
from hub.cli.printing import output
from hub.cli.printing.tables import UNLIMITED, plain
from hub.error_types.catalog import ERROR_TYPES


def print_table(what: RenderableType, width: int = UNLIMITED) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(what, markup=False)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {
        "type": f"headgate.{kind}",
        "time": "2026-11-20T20:16:36.123456Z",
        "subject": "db",
        "data": {"stack": {"name": "web"}, **data},
    }


HOOK = {"id": "1", "point": "pre-create", "deadline": "2026-11-21T20:16:36Z", "on_timeout": "stop"}

HOOK_OF_OTHERS = {"id": "2", "channel": "webhook", "target": "https://a.test"}


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        (event("resource.create.started", resource={"reason": "state changed"}), ["db"]),
        (event("resource.create.failed", resource={"reason": "no disk"}), ["db", "no disk"]),
        (event("stack.create.stopped", stack={"name": "web", "reason": "why"}), ["why"]),
        (event("hook.waiting", hook=HOOK), ["pre-create until 2026-11-21T20:16:36Z, then: stop"]),
        (
            event("hook.answered", hook=HOOK | {"decision": "reject", "decided_by": "ann",
                                                "reason": "not today"}),
            ["pre-create reject by ann: not today"],
        ),
        (event("hook.expired", hook=HOOK), ["pre-create expired"]),
        (event("hook.approved", hook=HOOK, details={"by": "ann", "missing": 1,
                                                 "reason": "ann approved pre-create"}),
         ["ann approved pre-create"]),
        (event("hook.escalated", hook=HOOK, details={"reason": ""}), ["pre-create"]),
        (event("hook.undeliverable", hook=HOOK, details={"reason": "no delivery succeeded"}),
         ["no delivery succeeded"]),
        (event("delivery.dead", subscription=HOOK_OF_OTHERS, delivery={"error": "it answered 500"},
               event={"type": "headgate.hook.waiting"}),
         ["headgate.hook.waiting to https://a.test: it answered 500"]),
        (event("delivery.delivered", subscription=HOOK_OF_OTHERS, delivery={"error": ""},
               event={"type": "headgate.hook.waiting"}), ["to https://a.test"]),
        (event("subscription.disabled", subscription=HOOK_OF_OTHERS, reason="it is gone"),
         ["https://a.test: it is gone"]),
    ],
)  # fmt: skip
def test_an_event_is_one_line(document: dict[str, Any], texts: list[str]) -> None:
    line = output.event_line(document)
    assert line.startswith("20:16:36  ") and "\n" not in line
    assert document["type"].removeprefix("headgate.") in line
    assert all(text in line for text in texts)


def test_only_failed_events_show_their_reason() -> None:
    line = output.event_line(event("resource.create.completed", resource={"reason": "changed"}))
    assert "changed" not in line


def test_control_characters_are_not_printed() -> None:
    bad = "a\x1b[2Jb\x07"
    assert "\x1b" not in plain(bad) and "\x07" not in plain(bad)
    assert "\x1b" not in output.event_line(
        event("resource.create.failed", resource={"reason": bad})
    )
    assert "\x1b" not in print_table(output.table([{"a": bad}], {"a": "A"}))
    assert plain("línea\n\tdos") == "línea\n\tdos"
    assert plain("p\u200day \u200day pay\u200c") == "p\ufffday \ufffday pay\ufffd"
    joined = "क\u094d\u200dष 👩\u200d👧"  # without its joiners, a word is another one
    assert plain(joined) == joined


def test_markup_in_values_is_printed_as_text() -> None:
    assert "[bold]x[/bold]" in print_table(output.table([{"a": "[bold]x[/bold]"}], {"a": "A"}))
    assert "[red]" in print_table(output.fields({"reason": "[red]"}, ("reason",)))


def test_a_table_shows_lists_maps_and_missing_values() -> None:
    rows = [{"a": ["x", "y"], "b": {"k": 1}, "c": None}]
    head, row = print_table(
        output.table(rows, {"a": "A", "b": "B", "c": "C", "d": "D"})
    ).splitlines()
    assert head.split() == ["A", "B", "C", "D"]
    assert row.split() == ["x,", "y", "k=1"]


def test_empty_fields_are_omitted() -> None:
    text = print_table(
        output.fields({"a_b": "1", "c": "", "d": [], "e": 0}, ("a_b", "c", "d", "e", "f"))
    )
    assert text.split() == ["a", "b", "1", "e", "0"]


def test_messages_begin_with_the_stack() -> None:
    stack = {"id": "1", "name": "web", "status": "CREATE_STOPPED", "reason": "db"}
    unknown = [{"sentence": "The state of web could not be observed."}]
    paused = [{"sentence": "The observation of 3 resources is paused."}]
    unrepaired = [{"sentence": "1 resource has differed."}]
    document = {"stack": stack, "nodes": [{"sentence": "db waits."}], "unknown": unknown,
                "paused": paused, "unrepaired": unrepaired}  # fmt: skip
    lines = output.sentences(document)
    assert lines == [
        "web: CREATE_STOPPED (db)", "  db waits.",
        "  1 resource has differed. To see the drift: headgate stack drift web",
        "  The state of web could not be observed.",
        "  The observation of 3 resources is paused.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data", "what"),
    [
        ("continue", {"size": 1}, "continue"),
        ("handed-over", {"to": "role:dba"}, "handed-over to role:dba"),
        ("progress", {"deadline": "2026-11-21"}, "progress until 2026-11-21"),
        ("breakpoint-added", {"id": "1", "at": "db", "rule": {"point": "pre-create"}},
         "breakpoint-added db:pre-create"),
        ("observation-credential-set", {"application_credential_id": "5d"},
         "observation-credential-set 5d"),
        ("breakpoint-removed", {"id": "1", "at": "", "rule": {"point": "pre-stack-update"}},
         "breakpoint-removed pre-stack-update"),
        ("refused", {"decision": "continue"}, "refused continue"),
        ("expired", None, "expired"),
    ],
)  # fmt: skip
def test_an_audit_log_entry_shows_decision_and_resource(kind: str, data: Any, what: str) -> None:
    assert output.entry_row({"kind": kind, "data": data})["what"] == what


@pytest.mark.parametrize(
    ("more", "who"),
    [
        ({}, "anyone in the project"),
        ({"exclude": "requester"}, "anyone in the project, not joe"),
        ({"answer_by": ["role:dba", "user:ann"]}, "role:dba, user:ann"),
        ({"answer_by": ["role:dba"], "assigned": "user:bob"}, "user:bob, role:dba"),
        ({"state": "answered"}, ""),
        ({"mode": "notify"}, ""),
    ],
)
def test_a_waiting_hook_shows_who_may_answer(more: dict[str, Any], who: str) -> None:
    hook: Any = {"state": "waiting", "mode": "wait", "answer_by": [], "assigned": None,
                 "exclude": "", "requested_by": "joe"}  # fmt: skip
    assert output.may_answer(hook | more) == who


def test_the_page_about_an_error_is_printed_on_a_terminal_only() -> None:
    url = "http://127.0.0.1:8004/errors/StackExists"
    error = response_error(409, {"error": {"type": "StackExists", "message": "no", "help": url}})
    assert error_text(error, terminal=True) == f"no\nSee {url}"
    assert error_text(error, terminal=False) == "no"


@pytest.mark.parametrize(
    ("remedy", "expected"),
    [
        ("GET .../stacks lists the stacks.", "`headgate stack list` lists the stacks."),
        ("GET .../versions lists them.", "`headgate stack history STACK` lists them."),
        ("GET .../stacks/web shows it.", "GET .../stacks/web shows it."),
        ("GET .../others lists them.", "GET .../others lists them."),
    ],
)
def test_a_remedy_names_the_command_in_place_of_the_request(remedy: str, expected: str) -> None:
    error = response_error(404, {"error": {"type": "EntityNotFound", "message": remedy}})
    assert error_text(error, terminal=False) == expected


def test_an_error_about_each_operation_of_a_breakpoint_is_shown_once() -> None:
    places = ("hooks.add[0]", "hooks.add[1]", "resources[0]", "resources[1]")
    message = "\n".join(f"{place}: not found" for place in places)
    error = response_error(400, {"error": {"type": "Invalid", "message": message}})
    assert error_text(error, terminal=False).splitlines() == [
        "hooks.add[0]: not found",
        "resources[0]: not found",
        "resources[1]: not found",
    ]


def test_the_commands_in_remedies_exist() -> None:
    names = [
        one.removesuffix(" STACK").removesuffix(" SUBSCRIPTION")
        for one in COMMANDS_OF_ROUTES.values()
    ]
    group: Any = typer.main.get_command(app)
    for name in names:
        command = group
        for part in name.split():
            command = command.commands[part]


@pytest.mark.parametrize("wide", [False, True])
def test_a_name_between_colons_is_not_an_emoji(
    wide: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    print_renderable("web:key:pre-create", wide=wide)
    complain("no hook at web:key:pre-create")
    printed = capsys.readouterr()
    assert printed.out == "web:key:pre-create\n"
    assert printed.err == "headgate: no hook at web:key:pre-create\n"


@pytest.mark.parametrize(
    "remedy",
    [CREDENTIAL_REMEDY, NEW_CREDENTIAL_REMEDY, KEYSTONE_REMEDY],
    ids=["no", "bad", "keystone"],
)
def test_a_request_without_a_valid_token_names_the_login_first(remedy: str) -> None:
    document = {"error": {"type": "Unauthorized", "message": "no", "remedy": remedy}}
    error = response_error(401, document, remedy=ApiClient.credential_remedy)
    text = error_text(error, terminal=False)
    assert text.startswith("no. Sign in with `headgate login`, or set HEADGATE_TOKEN")
    assert "X-Auth-Token" not in text and text.count("headgate login") == 1


def test_a_signal_to_a_type_without_signals_names_the_command_that_answers() -> None:
    remedy = ERROR_TYPES["ResourceActionNotSupported"].fix
    error = response_error(400, {"error": {"type": "E", "message": "no", "remedy": remedy}})
    text = error_text(error, terminal=False, stack="web")
    assert text == "no. To answer a waiting hook: `headgate hook continue web:RESOURCE`."


@pytest.mark.parametrize(
    ("status", "value", "lines"),
    [
        ("CREATE_IN_PROGRESS", None, ["OUTPUT  VALUE          ERROR", "app     not known yet"]),
        ("CREATE_COMPLETE", "x", ["OUTPUT  VALUE  ERROR", "app     x"]),
        ("DELETE_COMPLETE", None, []),
    ],
)
def test_outputs_without_a_value_are_not_known_yet(
    status: str, value: str | None, lines: list[str]
) -> None:
    outputs = [{"output_key": "app", "output_value": value}]
    stack = {"stack_name": "web", "id": "1", "stack_status": status, "disable_rollback": True}
    printed = print_table(output.render_stack(stack | {"outputs": outputs}))
    shown = [line.rstrip() for line in printed.splitlines()]
    assert shown[3:4] == ["rollback      off"]
    assert [line for line in shown[4:] if line] == lines


@pytest.mark.parametrize(
    ("name", "option"),
    [("DataRefused", "--data KEY=VALUE"), ("UserParameterMissing", "-P NAME=VALUE")],
)
def test_a_remedy_names_the_option_of_the_command(name: str, option: str) -> None:
    remedy = ERROR_TYPES[name].fix
    error = response_error(400, {"error": {"type": name, "message": f"no. {remedy}"}})
    text = error_text(error, terminal=False)
    assert option in text and remedy not in text
