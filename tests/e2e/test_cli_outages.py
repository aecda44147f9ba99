"""Commands that wait while the server is away, refuses their token, or has another protocol."""

import json
import os
from subprocess import PIPE, Popen

from tests.e2e.server_process import running_process
from tests.support.command_line import (
    ENVIRONMENT,
    TEMPLATE,
    completed,
    headgate,
    running_command,
)

PIPES = {"stdout": PIPE, "stderr": PIPE}
WAITS = "waiting for approval (1): app at pre-create"
CONTINUES = (
    "The create continues on the server. `headgate watch {0}` follows it, `headgate stack stop {0}`"
    " stops it."
)


def read_until(running: "Popen[str]", text: str) -> list[str]:
    """The lines of standard error up to the one with this text."""
    assert running.stderr is not None
    lines: list[str] = []
    while not lines or text not in lines[-1]:
        lines.append(running.stderr.readline())
        assert lines[-1], lines
    return lines


def rest_of(running: "Popen[str]") -> tuple[int, str, str]:
    """The exit code, the output, and what is left of standard error, when the command has ended."""
    assert running.stdout is not None and running.stderr is not None
    error, output = running.stderr.read(), running.stdout.read()
    return running.wait(60), output, error


def test_waiting_commands_survive_a_killed_server() -> None:
    create = ("stack", "create", "w", "-t", TEMPLATE, "-e", ENVIRONMENT, "--wait")
    with (
        running_process() as mortal,
        running_command(*create, server=mortal, **PIPES) as waiting,
    ):
        read_until(waiting, WAITS)
        with running_command("watch", "w", server=mortal, **PIPES) as following:
            assert following.stdout is not None
            assert "app waits at pre-create" in following.stdout.readline()
            mortal.kill()
            read_until(waiting, "connection lost (no response from")
            read_until(following, "connection lost (no response from")
            mortal.start()
            read_until(following, "connected again")
            headgate(mortal, "hook", "continue", "w:app")
            code, result, error = rest_of(waiting)
            assert code == 0 and "CREATE_COMPLETE" in result
            assert error.count("connected again") == 1 and "connection lost" not in error
            code, result, error = rest_of(following)
            assert code == 0 and "stack.create.completed" in result and error == ""


def test_a_revoked_token_ends_a_wait_but_not_the_change() -> None:
    with running_process(settings='[auth]\nmode = "tokens"\n') as server:
        made = completed("admin", "create-token", "root", "--role", "admin", "--everywhere",
                         "--data-dir", str(server.folder / "data"))  # fmt: skip
        root = {"HEADGATE_TOKEN": made.stdout.strip()}
        made = completed("token", "create", "ci", "--role", "author", "--json", server=server,
                         environment=root)  # fmt: skip
        token = json.loads(made.stdout)
        create = ("stack", "create", "w", "-t", TEMPLATE, "-e", ENVIRONMENT, "--wait")
        author = os.environ | {"HEADGATE_TOKEN": token["token"]}
        with running_command(*create, server=server, env=author, **PIPES) as waiting:  # fmt: skip
            read_until(waiting, WAITS)
            completed("token", "revoke", token["id"], "--yes", server=server, environment=root)
            code, result, error = rest_of(waiting)
        assert (code, result) == (1, "")
        message = error.splitlines()[-1]
        assert "invalid, revoked or expired" in message and "`headgate login`" in message
        assert message.endswith(CONTINUES.format("w"))
        show = completed("stack", "show", "w", "--json", server=server, environment=root)
        assert json.loads(show.stdout)["stack_status"] == "CREATE_IN_PROGRESS"
