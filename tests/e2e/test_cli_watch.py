"""Watching a stack with the real command line, on a terminal and in a pipe."""

import contextlib
import json
import os
import pty
import select
import signal
import tempfile
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tests.support.command_line import (
    ENVIRONMENT,
    TEMPLATE,
    headgate,
    headgate_json,
    running_command,
)
from tests.support.program import PATIENCE, ServerProcess


def test_watch_prints_each_event_and_ends_with_the_stack(server: ServerProcess) -> None:
    headgate(server, "stack", "create", "seen", "-t", TEMPLATE, "-e", ENVIRONMENT)
    with running_command("watch", "seen", "--json", server=server, stdout=PIPE) as watching:
        until_stream_connected(server, "seen")
        headgate(server, "hook", "continue", "seen:app")
        out, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    events = [json.loads(line) for line in out.splitlines()]
    assert all(event["specversion"] == "1.0" for event in events)
    assert [event["type"] for event in events if "resource" not in event["type"]] == [
        "headgate.hook.answered",
        "headgate.stack.create.completed",
    ]


def test_watch_draws_a_live_tree_on_a_terminal(server: ServerProcess, tmp_path: Path) -> None:
    environment = tmp_path / "env.yaml"
    environment.write_text("hooks: [{at: '*', on: pre-create}]")
    headgate(server, "stack", "create", "drawn", "-t", TEMPLATE, "-e", str(environment))
    ours, theirs = pty.openpty()
    environ = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    environ.pop("NO_COLOR", None)
    terminal = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "env": environ}
    with running_command("watch", "drawn", server=server, **terminal) as watching:
        os.close(theirs)
        seen = read_until(ours, "waits at pre-create, 23h59m left")
        headgate(server, "hook", "continue", "drawn:secret")
        seen += read_until(ours, "1 of 2 nodes done")
        headgate(server, "hook", "continue", "drawn:app")
        rest = read_until_closed(ours)
        assert watching.wait(60) == 0
    assert "\x1b[" in seen and "0 of 2 nodes done" in seen
    assert "CREATE_COMPLETE" in rest and "2 of 2 nodes done" in rest


def test_watch_continues_after_a_restart_of_the_server() -> None:
    with tempfile.TemporaryDirectory(prefix="headgate-e2e-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        mortal = ServerProcess(folder)
        mortal.start()
        create = ("stack", "create", "two", "-t", TEMPLATE, "-e", ENVIRONMENT)
        headgate(mortal, *create, "--until-waiting", code=5)
        with running_command("watch", "two", server=mortal, stdout=PIPE, stderr=PIPE) as watching:
            assert watching.stdout is not None and watching.stderr is not None
            assert "app waits at pre-create" in watching.stdout.readline()
            mortal.kill()
            assert "reconnecting" in watching.stderr.readline()
            mortal.start()
            headgate(mortal, "hook", "continue", "two:app")
            out, _ = watching.communicate(timeout=60)
        assert watching.returncode == 0, out
        assert mortal.stop() == 0


def test_events_are_followed_until_interrupted(server: ServerProcess) -> None:
    headgate(server, "stack", "create", "tail", "-t", TEMPLATE, "--wait")
    pipes = {"stdout": PIPE, "stderr": PIPE}
    with running_command("events", "tail", "-f", server=server, **pipes) as following:
        assert following.stdout is not None
        # Nothing shows that the stream is connected, so send events until one arrives.
        ready: list[Any] = []
        deadline = time.monotonic() + PATIENCE
        while not ready:
            assert time.monotonic() < deadline
            headgate(server, "stack", "resume", "tail", "--wait")
            ready, _, _ = select.select([following.stdout], [], [], 0)
        assert "stack.update." in following.stdout.readline()
        following.send_signal(signal.SIGINT)
        _, complaint = following.communicate(timeout=60)
    assert following.returncode == -signal.SIGINT
    assert complaint == (
        "headgate: interrupted; the server keeps all events. `headgate events tail` lists them\n"
    )


def test_ctrl_c_ends_a_wait_but_not_the_action(server: ServerProcess) -> None:
    create = ("stack", "create", "left", "-t", TEMPLATE, "-e", ENVIRONMENT, "--wait", "-o", "json")
    pipes = {"stdout": PIPE, "stderr": PIPE}
    with running_command(*create, server=server, **pipes) as waiting:
        assert waiting.stderr is not None
        progress = json.loads(waiting.stderr.readline())["progress"]["message"]
        assert "waiting for approval (1): app at pre-create" in progress
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (-signal.SIGINT, "")
    *_, last = err.splitlines()  # the lines before say who may answer, if they were written by then
    assert json.loads(last)["error"] == {
        "type": "Interrupted",
        "title": "Interrupted",
        "message": "interrupted; the create continues on the server. `headgate watch left` follows"
        " it, `headgate stack stop left` stops it",
    }
    headgate(server, "hook", "continue", "left:app")
    headgate(server, "watch", "left")


def test_sigterm_ends_a_command_with_a_message(server: ServerProcess) -> None:
    create = ("stack", "create", "ended", "-t", TEMPLATE, "-e", ENVIRONMENT)
    headgate(server, *create, "--until-waiting", code=5)
    with running_command("watch", "ended", server=server, stdout=PIPE, stderr=PIPE) as watching:
        assert watching.stdout is not None
        assert "app waits at pre-create" in watching.stdout.readline()
        watching.terminate()
        _, err = watching.communicate(timeout=60)
    assert watching.returncode == -signal.SIGTERM
    assert err == (
        "headgate: interrupted; the action continues on the server. `headgate watch ended` follows"
        " it again\n"
    )


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_command_ends_silently_when_nothing_reads_its_output(
    server: ServerProcess, output: str
) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    listing = ("type", "list", "-o", output)
    with running_command(*listing, server=server, stdout=write_end, stderr=PIPE) as command:
        os.close(write_end)
        _, err = command.communicate(timeout=60)
    assert (command.returncode, err) == (-signal.SIGPIPE, "")


def until_stream_connected(server: ServerProcess, stack: str) -> None:
    """Wait until the server's first stream reader is connected: the client fetches the graph only
    afterwards.

    According to the server's log, because the client prints nothing about it.
    """
    stack_id = headgate_json(server, "stack", "show", stack)["id"]
    path = f"/stacks/{stack}/{stack_id}/graph"
    deadline = time.monotonic() + PATIENCE
    while path not in server.log.read_text():
        assert time.monotonic() < deadline, server.log.read_text()[-3000:]
        time.sleep(0.02)


def read_until(terminal: int, text: str) -> str:
    """The output on a terminal up to this text, which must appear."""
    seen, deadline = b"", time.monotonic() + PATIENCE
    while text not in seen.decode(errors="replace"):
        assert time.monotonic() < deadline, seen
        ready, _, _ = select.select([terminal], [], [], 1)
        seen += os.read(terminal, 65536) if ready else b""
    return seen.decode(errors="replace")


def read_until_closed(terminal: int) -> str:
    seen = b""
    with contextlib.suppress(OSError):  # Linux reports this when the other side is closed
        while some := os.read(terminal, 65536):
            seen += some
    os.close(terminal)
    return seen.decode(errors="replace")
