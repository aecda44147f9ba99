"""Each command that the command line proposes for an action that has stopped or failed, or that it
cannot end, executed as it is printed."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.command_line import headgate, headgate_json
from tests.support.direct_api import DirectApi
from tests.support.program import ServerProcess, resource, template

TEMPLATE = template({"a": resource("1")})
BROKEN = template({"a": resource("1"), "b": {"type": "OS::Heat::TestResource",
                                             "properties": {"fail": True}}})  # fmt: skip
#: What continues the action, and the status of the stack afterwards.
CONTINUED = {
    "CREATE": ("resume", "UPDATE_COMPLETE"),
    "UPDATE": ("resume", "UPDATE_COMPLETE"),
    "ROLLBACK": ("resume", "UPDATE_COMPLETE"),
    "RESTORE": ("resume", "UPDATE_COMPLETE"),
    "ADOPT": ("resume", "UPDATE_COMPLETE"),
    "DELETE": ("delete", "DELETE_COMPLETE"),
    "CHECK": ("check", "CHECK_COMPLETE"),
    "SUSPEND": ("suspend", "SUSPEND_COMPLETE"),
    "RESUME": ("resume", "RESUME_COMPLETE"),
    "SNAPSHOT": ("snapshot create", "SNAPSHOT_COMPLETE"),
}


class HeldStack:
    """A stack with an action that waits at a hook before it starts."""

    def __init__(self, server: ServerProcess, folder: Path, action: str, name: str) -> None:
        self._server, self._folder = server, folder
        self.action, self.name = action, name
        self.api = DirectApi(server)
        self._start()
        self.id = self.api.get(name)["stack"]["id"]

    def run(self, *words: str, code: int = 0) -> str:
        return headgate(self._server, *words, code=code)

    def file(self, kind: str, document: object) -> str:
        path = self._folder / f"{self.name}-{kind}.json"
        path.write_text(json.dumps(document))
        return str(path)

    def _start(self) -> None:
        rule = {"on": f"pre-stack-{self.action.lower()}"}
        hooks = ("-e", self.file("hooks", {"hooks": [rule]}))
        create = ("stack", "create", self.name, "-t", self.file("template", TEMPLATE), *hooks)
        if self.action == "CREATE":
            return self._hold(*create)
        self.run(*create, "--wait")
        match self.action:
            case "UPDATE":
                self._hold("stack", "update", self.name, "--existing")
            case "ROLLBACK":
                broken = ("-t", self.file("broken", BROKEN), *hooks)
                self._hold("stack", "update", self.name, *broken, "--rollback")
            case "RESTORE":
                self.run("stack", "snapshot", "create", self.name, "--name", "s", "--wait")
                self._hold("stack", "snapshot", "restore", self.name, "s", "--yes")
            case "ADOPT":
                document = headgate_json(self._server, "stack", "abandon", self.name, "--yes")
                self._hold("stack", "adopt", self.name, "-f", self.file("abandoned", document))
            case "RESUME":
                self.run("stack", "suspend", self.name, "--wait")
                self._hold("stack", "resume", self.name)
            case "DELETE":
                self._hold("stack", "delete", self.name, "--yes")
            case "SNAPSHOT":
                self._hold("stack", "snapshot", "create", self.name)
            case _:
                self._hold("stack", self.action.lower(), self.name)
        return None

    def _hold(self, *words: str) -> None:
        self.run(*words, "--until-waiting", code=5)

    def proposed(self, text: str) -> list[str]:
        """The commands in a text, without `headgate`."""
        return re.findall(r"headgate (stack [a-z][^`\n]*)", text)

    def execute(self, command: str, status: str) -> None:
        """Execute a proposed command, answer its hook if it opens one, and wait for the end."""
        words = shlex.split(command)
        words += ["--yes"] if words[1] == "delete" else []
        if status.startswith(f"{self.action}_"):
            self._hold(*words)
            self.run("hook", "continue", "--stack", self.name, "--yes")
        else:
            self.run(*words)
        self.api.until_status(self.id, status)


@pytest.mark.parametrize("action", [*CONTINUED])
def test_a_stopped_action_is_continued_by_the_printed_command(
    server: ServerProcess, tmp_path: Path, action: str
) -> None:
    stack = HeldStack(server, tmp_path, action, f"stopped-{action.lower()}")
    stopped = stack.run("stack", "stop", stack.name)
    word, status = CONTINUED[action]
    command = f"stack {word} {stack.name}"
    assert stack.proposed(stopped)[0] == command
    assert stack.proposed(stack.run("stack", "show", stack.name))[0] == command
    assert stack.proposed(stack.run("why", stack.name))[0] == command
    for refused in ("cancel", "stop"):
        yes = ["--yes"] if refused == "cancel" else []
        error = stack.run("stack", refused, stack.name, *yes, code=1)
        assert f"{action}_STOPPED is not supported" in error
        assert stack.proposed(error) == [command]
    stack.execute(command, status)


@pytest.mark.parametrize("action", ["UPDATE", "DELETE", "CHECK", "SUSPEND", "RESUME", "SNAPSHOT"])
def test_a_failed_action_is_continued_by_the_printed_command(
    server: ServerProcess, tmp_path: Path, action: str
) -> None:
    stack = HeldStack(server, tmp_path, action, f"failed-{action.lower()}")
    stack.run("hook", "reject", "--stack", stack.name, "--yes")
    stack.api.until_status(stack.id, f"{action}_FAILED")
    word, status = CONTINUED[action]
    shown = stack.proposed(stack.run("stack", "show", stack.name))
    assert shown[0] == f"stack {word} {stack.name}"
    assert stack.proposed(stack.run("why", stack.name)) == shown
    others = {"SUSPEND": "RESUME_COMPLETE", "CHECK": "UPDATE_COMPLETE"}
    for other in shown[1:]:
        stack.execute(other, others[action])
        break
    else:
        stack.execute(shown[0], status)


@pytest.mark.parametrize("action", [one for one in CONTINUED if one not in ("UPDATE", "RESTORE")])
def test_an_action_that_cannot_be_cancelled_is_ended_by_the_proposed_commands(
    server: ServerProcess, tmp_path: Path, action: str
) -> None:
    stack = HeldStack(server, tmp_path, action, f"cancelled-{action.lower()}")
    commands = stack.proposed(stack.run("stack", "cancel", stack.name, "--yes", code=1))
    ends = [f"stack stop {stack.name}", f"stack cancel {stack.name} --no-rollback"]
    assert commands == (ends[:1] if action == "DELETE" else ends)
    stack.run(*shlex.split(commands[-1]))
    progress = "STOPPED" if action == "DELETE" else "FAILED"
    assert stack.api.status(stack.id) == f"{action}_{progress}"


def test_an_action_in_progress_that_keeps_another_from_starting_can_be_stopped(
    server: ServerProcess, tmp_path: Path
) -> None:
    stack = HeldStack(server, tmp_path, "CREATE", "occupied")
    for words in (("suspend",), ("check",), ("snapshot", "create")):
        error = stack.run("stack", *words, stack.name, code=1)
        assert "Wait until it ends" in error and "stop it" in error
    stack.run("stack", "stop", stack.name)
    stack.run("stack", "suspend", stack.name, "--wait")
