"""The real command line against a real server."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import ServerProcess

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def headgate(server: ServerProcess, *words: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "hub.cli.main", *words, "--url", server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout if code in (0, 3, 4, 5, 6) else done.stderr


def spoken(server: ServerProcess, *words: str, code: int = 0) -> Any:
    return json.loads(headgate(server, *words, "--json", code=code))


def test_a_stack_from_its_beginning_to_its_end(server: ServerProcess) -> None:
    template, environment = str(EXAMPLES / "first-stack.yaml"), str(EXAMPLES / "first-env.yaml")
    create = ("stack", "create", "life", "-t", template, "-e", environment, "-P", "length=12")
    stack = spoken(server, *create, "--until-waiting", code=5)
    assert stack["stack_status"] == "CREATE_IN_PROGRESS"
    (hook,) = spoken(server, "hook", "list", "--stack", "life")
    assert hook["point"] == "pre-create"
    assert "pre-create" in headgate(server, "hook", "list")
    assert "waits at pre-create since" in headgate(server, "why", "life")
    shown = headgate(server, "hook", "show", "life:app")
    assert "******" in shown and "user:" not in shown.replace("user:******", "")
    assert "answered" in headgate(server, "hook", "continue", "life:app", "--reason", "fine")
    assert spoken(server, "stack", "show", "life")["stack_status"] == "CREATE_COMPLETE"
    assert "life" in headgate(server, "stack", "list")
    assert "Stack CREATE completed successfully" in headgate(server, "events", "life")
    deleted = spoken(server, "stack", "delete", "life", "--wait")
    assert deleted["stack_status"] == "DELETE_COMPLETE"


def test_stopped_and_resumed(server: ServerProcess, tmp_path: Path) -> None:
    environment = tmp_path / "env.yaml"
    environment.write_text("hooks: [{at: app, on: pre-create, timeout: 1s}]")
    template = str(EXAMPLES / "first-stack.yaml")
    create = ("stack", "create", "halt", "-t", template, "-e", str(environment), "--wait")
    assert spoken(server, *create, code=4)["stack_status"] == "CREATE_STOPPED"
    assert "stopped: nobody answered pre-create in time" in headgate(server, "why", "halt")
    resumed = spoken(server, "stack", "resume", "halt", "--clear", "app", "--wait")
    assert resumed["stack_status"] == "UPDATE_COMPLETE"


def test_a_failed_stack_has_a_code_of_its_own(server: ServerProcess, tmp_path: Path) -> None:
    template = tmp_path / "bad.yaml"
    template.write_text(
        "heat_template_version: 2018-08-31\n"
        "resources: {a: {type: OS::Heat::TestResource, properties: {fail: true}}}"
    )
    create = ("stack", "create", "bad", "-t", str(template), "--wait")
    assert spoken(server, *create, code=3)["stack_status"] == "CREATE_FAILED"


def test_waiting_is_bounded(server: ServerProcess, tmp_path: Path) -> None:
    template = str(EXAMPLES / "first-stack.yaml")
    environment = str(EXAMPLES / "first-env.yaml")
    create = ("stack", "create", "slow", "-t", template, "-e", environment, "--wait")
    headgate(server, *create, "--timeout", "1s", code=6)


def test_watch_prints_each_event_and_ends_with_the_stack(server: ServerProcess) -> None:
    template, environment = str(EXAMPLES / "first-stack.yaml"), str(EXAMPLES / "first-env.yaml")
    headgate(server, "stack", "create", "seen", "-t", template, "-e", environment)
    command = [sys.executable, "-m", "hub.cli.main", "watch", "seen", "--url", server.url, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        while not spoken(server, "hook", "list", "--stack", "seen"):
            pass
        headgate(server, "hook", "continue", "seen:app")
        out, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert all(json.loads(line)["specversion"] == "1.0" for line in out.splitlines())


def test_subscriptions_are_made_shown_and_forgotten(server: ServerProcess) -> None:
    made = spoken(
        server, "subscription", "create", "http://127.0.0.1:9/x", "--events", "headgate.*"
    )
    assert made["secret"].startswith("whsec_")
    shown = spoken(server, "subscription", "show", made["id"])
    assert "secret" not in shown and shown["events"] == ["headgate.*"]
    tried = spoken(server, "subscription", "test", made["id"])
    assert tried["delivered"] is False and tried["reason"]
    headgate(server, "subscription", "delete", made["id"])
    assert made["id"] not in headgate(server, "subscription", "list")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("stack", "show", "nope"), 1, "could not be found"),
        (("stack", "create", "x", "-t", "/nope.yaml"), 1, "/nope.yaml: cannot be read"),
        (("stack", "update", "x"), 2, "--existing"),
        (("hook", "continue", "nope"), 1, "headgate hook list"),
        (("stack", "delete", "nope", "--timeout", "soon"), 2, "90s, 30m or 2h"),
    ],
)
def test_bad_input_is_said_in_a_line_and_has_a_code(
    server: ServerProcess, words: tuple[str, ...], code: int, told: str
) -> None:
    assert told in headgate(server, *words, code=code)


def test_without_a_server_it_says_how_to_start_one() -> None:
    command = [sys.executable, "-m", "hub.cli.main", "stack", "list", "--url", "http://127.0.0.1:9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "http://127.0.0.1:9" in done.stderr and "headgate serve" in done.stderr


def test_a_wrong_setting_is_refused_by_name(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("[server]\nlistne = 1\n")
    command = [sys.executable, "-m", "hub.cli.main", "serve", "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "listne" in done.stderr and "listen" in done.stderr


def test_a_second_server_on_one_data_directory_is_refused(server: ServerProcess) -> None:
    command = [sys.executable, "-m", "hub.cli.main", "serve", "--listen", "127.0.0.1:0",
               "--data-dir", str(server.folder / "data")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and str(server.pid) in done.stderr


def test_the_demo_verifies_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hub.cli.main", "demo"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything was as it must be." in done.stdout
