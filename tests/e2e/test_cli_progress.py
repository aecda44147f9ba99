"""What a command shows while it waits."""

import json
from subprocess import PIPE

from tests.support.command_line import ENVIRONMENT, TEMPLATE, headgate, running_command
from tests.support.program import ServerProcess
from tests.support.terminal import terminal


def test_a_command_that_waits_draws_a_live_tree_on_a_terminal(server: ServerProcess) -> None:
    create = ("stack", "create", "drawn-waiting", "-t", TEMPLATE, "-e", ENVIRONMENT, "--wait")
    with terminal(*create, server=server, columns=120) as user:
        user.read_until("To approve it: headgate hook continue drawn-waiting:app")
        assert "waiting for approval (1)" in user.screen and "1 of 2 nodes done" in user.screen
        headgate(server, "hook", "continue", "drawn-waiting:app")
        last = user.wait().rpartition("nodes done")[2]
    # The tree is removed; the result is what stays.
    assert "CREATE_COMPLETE" in last and "stack name" in last


def test_a_command_that_waits_in_a_pipe_prints_changes_to_standard_error(
    server: ServerProcess,
) -> None:
    create = ("stack", "create", "piped", "-t", TEMPLATE, "-e", ENVIRONMENT, "--wait", "--json")
    with running_command(*create, server=server, stdout=PIPE, stderr=PIPE) as waiting:
        assert waiting.stderr is not None
        line = waiting.stderr.readline()
        while "waiting" not in line:
            line = waiting.stderr.readline()
        message = (
            "piped: CREATE_IN_PROGRESS, waiting for approval (1): app at pre-create; "
            "1 of 2 nodes done"
        )
        assert json.loads(line) == {"progress": {"message": message}}
        hints = [json.loads(waiting.stderr.readline())["progress"]["message"] for _ in range(3)]
        assert hints == [
            "Who may answer: anyone in the project",
            "To see what changes: headgate hook show piped:app",
            "To approve it: headgate hook continue piped:app",
        ]
        headgate(server, "hook", "continue", "piped:app")
        result, _ = waiting.communicate(timeout=120)
    assert waiting.returncode == 0 and json.loads(result)["stack_status"] == "CREATE_COMPLETE"
