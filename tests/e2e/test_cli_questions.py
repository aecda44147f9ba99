"""Commands that destroy something ask on a terminal, and are refused elsewhere without --yes."""

import errno
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import typer.main

from hub.cli.main import app
from tests.support import forks
from tests.support.command_line import TEMPLATE, headgate, headgate_json, running_command
from tests.support.program import PATIENCE, ServerProcess
from tests.support.terminal import terminal


def test_a_delete_tells_what_is_lost_and_asks(server: ServerProcess) -> None:
    stack = headgate_json(server, "stack", "create", "asked", "-t", TEMPLATE, "--wait")
    with terminal("stack", "delete", "asked", server=server) as user:
        shown = user.read_until("[y/N]")
        assert f"Stack asked ({stack['id']}) is CREATE_COMPLETE and has 2 resources:" in shown
        assert "  1 OS::Heat::RandomString\n  1 OS::Heat::TestResource\n" in shown
        assert "Delete the stack asked and its physical resources?" in shown
        user.type("\n")
        answered = user.wait(1)
        assert "nothing was changed" in answered and "--yes" not in answered
    assert headgate_json(server, "stack", "show", "asked")["stack_status"] == "CREATE_COMPLETE"
    with terminal("stack", "delete", stack["id"][:8], "--wait", server=server) as user:
        user.read_until("[y/N]")
        user.type("y\n")
        assert "DELETE_COMPLETE" in user.wait()


def test_a_mark_and_a_restore_tell_what_is_lost_and_ask(server: ServerProcess) -> None:
    headgate(server, "stack", "create", "marked", "-t", TEMPLATE, "--wait")
    headgate(server, "stack", "snapshot", "create", "marked", "--name", "kept", "--wait")
    (first, *_) = headgate_json(server, "resource", "list", "marked")
    name = first["resource_name"]
    with terminal("resource", "mark-unhealthy", "marked", name, server=server, columns=200) as user:
        shown = user.read_until("[y/N]")
        assert f"The next update of the stack replaces {name} ({first['resource_type']}," in shown
        user.type("n\n")
        assert "nothing was changed" in user.wait(1)
    with terminal(
        "stack", "snapshot", "restore", "marked", "kept", "--wait", server=server, columns=200
    ) as user:
        shown = user.read_until("[y/N]")
        assert "Later changes are lost." in shown and "will be deleted" not in shown
        user.type("y\n")
        assert "RESTORE_COMPLETE" in user.wait()
    listed = headgate_json(server, "resource", "list", "marked")
    assert all(one["resource_status"] != "CHECK_FAILED" for one in listed)


def test_a_question_ends_with_ctrl_c_and_changes_nothing(server: ServerProcess) -> None:
    headgate(server, "stack", "create", "interrupted", "-t", TEMPLATE, "--wait")
    with terminal("stack", "delete", "interrupted", server=server) as user:
        user.read_until("[y/N]")
        user.interrupt()
        assert "headgate: interrupted; nothing was changed" in user.wait(-signal.SIGINT)
    assert headgate(server, "stack", "show", "interrupted")


def test_other_deletes_ask_too(server: ServerProcess) -> None:
    made = headgate_json(server, "subscription", "create", "http://127.0.0.1:9/asked")
    with terminal("subscription", "delete", made["id"][:8], server=server, columns=200) as user:
        shown = user.read_until("[y/N]")
        assert "Delete the subscription of webhook http://127.0.0.1:9/asked?" in shown
        assert "pending deliveries are not sent" in shown
        user.type("y\n")
        user.wait()
    assert made["id"] not in headgate(server, "subscription", "list")


@pytest.mark.parametrize(
    "words",
    [
        ("stack", "delete", "unasked"),
        ("stack", "abandon", "unasked"),
        ("stack", "snapshot", "delete", "unasked", "saved"),
        ("stack", "snapshot", "restore", "unasked", "saved"),
        ("stack", "cancel", "unasked"),
        ("stack", "converge", "unasked"),
        ("resource", "mark-unhealthy", "unasked", "secret"),
    ],
    ids=" ".join,
)
def test_without_a_terminal_the_command_is_refused_and_reads_nothing(
    server: ServerProcess, words: tuple[str, ...], tmp_path: Path
) -> None:
    if "unasked" not in headgate(server, "stack", "list"):
        headgate(server, "stack", "create", "unasked", "-t", TEMPLATE, "--wait")
        headgate(server, "stack", "snapshot", "create", "unasked", "--name", "saved", "--wait")
    done = forks.run((*words, "--url", server.url), dict(os.environ))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "headgate: nothing was changed: standard input is not a terminal, so the command cannot "
        "ask for confirmation. Use --yes to skip the question.\n"
    )
    assert "saved" in headgate(server, "stack", "snapshot", "list", "unasked")


#: Commands with a question about a stack, without --yes.
ASKING = (
    ("stack", "delete", "reused-1"),
    ("stack", "abandon", "reused-2"),
    ("stack", "cancel", "reused-3"),
    ("stack", "converge", "reused-4"),
    ("stack", "snapshot", "delete", "reused-5", "kept"),
    ("stack", "snapshot", "restore", "reused-6", "kept"),
    ("resource", "mark-unhealthy", "reused-7", "secret"),
)


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_an_answer_is_about_the_stack_of_the_question(
    server: ServerProcess, words: tuple[str, ...]
) -> None:
    (name,) = (word for word in words if word.startswith("reused"))
    create_waiting_stack(server, name)
    with terminal(*words, server=server) as user:
        user.read_until("[y/N]")
        headgate(server, "stack", "delete", name, "--yes", "--wait")
        create_waiting_stack(server, name)
        before = read_stack(server, name)
        user.type("y\n")
        user.wait(1)
    assert read_stack(server, name) == before


def create_waiting_stack(server: ServerProcess, name: str) -> None:
    """A stack with a snapshot, whose update waits for an answer."""
    headgate(server, "stack", "create", name, "-t", TEMPLATE, "--wait")
    headgate(server, "stack", "snapshot", "create", name, "--name", "kept", "--wait")
    headgate(
        server, "stack", "update", name, "-t", TEMPLATE, "-P", "length=9",
        "--break-at", "secret", "--until-waiting", code=5,
    )  # fmt: skip


def read_stack(server: ServerProcess, name: str) -> list[Any]:
    """Everything of a stack that these commands change."""
    return [
        headgate_json(server, *words, name)
        for words in (
            ("stack", "show"), ("stack", "history"), ("stack", "snapshot", "list"),
            ("resource", "list"), ("stack", "decisions"), ("stack", "drift"),
        )
    ]  # fmt: skip


def test_every_command_with_a_question_about_a_stack_is_in_this_test() -> None:
    tested = {words[: len(words) - 1 - (words[-1] in ("kept", "secret"))] for words in ASKING}
    asking = {
        words for words, one in commands()
        if any("--yes" in parameter.opts for parameter in one.params)
        and any(parameter.name in ("name", "stack") and parameter.param_type_name == "argument"
                for parameter in one.params)
    }  # fmt: skip
    assert asking - tested == {("stack", "from-resources")}  # it creates a stack


def commands(
    command: Any = None, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The words of each command, and the command."""
    command = command or typer.main.get_command(app)
    below = getattr(command, "commands", {})
    if not below:
        yield words, command
    for name, one in below.items():
        yield from commands(one, (*words, name))


@pytest.mark.parametrize(("which", "message"), [("0000", "could not be found"), ("zz", "zz")])
def test_an_unknown_beginning_of_an_id_is_refused(
    server: ServerProcess, which: str, message: str
) -> None:
    assert message in headgate(server, "stack", "show", which, code=1)
    refused = headgate(server, "subscription", "show", which, code=1)
    assert which in refused


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_waits_for_a_file_can_be_ended(
    server: ServerProcess, tmp_path: Path, number: signal.Signals
) -> None:
    pipe = tmp_path / "template.yaml"
    os.mkfifo(pipe)
    words = ("stack", "create", "unread", "-t", str(pipe))
    with running_command(*words, server=server, stderr=PIPE) as reading:
        writer = open_for_reader(pipe)
        reading.send_signal(number)
        _, error = reading.communicate(timeout=30)
        os.close(writer)
    assert (reading.returncode, error) == (-number, "headgate: interrupted\n")


def open_for_reader(pipe: Path) -> int:
    """The writing end of a named pipe, as soon as a process reads it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO and time.monotonic() < deadline
            time.sleep(0.02)
