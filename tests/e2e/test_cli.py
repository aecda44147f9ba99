"""The real command line against a real server."""

import json
import os
import subprocess
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.support.command_line import (
    ENVIRONMENT,
    TEMPLATE,
    command,
    completed,
    headgate,
    headgate_json,
    running_command,
)
from tests.support.program import PATIENCE, ServerProcess


def test_a_stack_is_created_listed_and_deleted(server: ServerProcess) -> None:
    create = ("stack", "create", "life", "-t", TEMPLATE, "-e", ENVIRONMENT, "-P", "length=12")
    stack = headgate_json(server, *create, "--until-waiting", code=5)
    assert stack["stack_status"] == "CREATE_IN_PROGRESS"
    (hook,) = headgate_json(server, "hook", "list", "--stack", "life")
    assert hook["point"] == "pre-create"
    assert "pre-create" in headgate(server, "hook", "list")
    assert "has waited at pre-create since" in headgate(server, "why", "life")
    output = headgate(server, "hook", "show", "life:app")
    assert "******" in output and "user:" not in output.replace("user:******", "")
    assert "answered" in headgate(server, "hook", "continue", "life:app", "--reason", "fine")
    assert headgate_json(server, "stack", "show", "life")["stack_status"] == "CREATE_COMPLETE"
    shown = headgate(server, "stack", "show", "life")
    (app,) = headgate_json(server, "stack", "show", "life")["outputs"]
    assert app["output_value"] in shown and "user:" not in shown
    assert "life" in headgate(server, "stack", "list")
    assert "Stack CREATE completed successfully" in headgate(server, "events", "life")
    deleted = headgate_json(server, "stack", "delete", "life", "--yes", "--wait")
    assert deleted["stack_status"] == "DELETE_COMPLETE"


def test_a_stack_is_stopped_and_resumed(server: ServerProcess, tmp_path: Path) -> None:
    environment = tmp_path / "env.yaml"
    environment.write_text("hooks: [{at: app, on: pre-create, timeout: 1s}]")
    create = ("stack", "create", "halt", "-t", TEMPLATE, "-e", str(environment), "--wait")
    assert headgate_json(server, *create, code=4)["stack_status"] == "CREATE_STOPPED"
    assert "stopped: no answer at pre-create before its deadline" in headgate(server, "why", "halt")
    resumed = headgate_json(server, "stack", "resume", "halt", "--clear", "app", "--wait")
    assert resumed["stack_status"] == "UPDATE_COMPLETE"


def test_a_failed_stack_has_its_own_exit_code(server: ServerProcess, tmp_path: Path) -> None:
    template = tmp_path / "bad.yaml"
    template.write_text(
        "heat_template_version: 2018-08-31\n"
        "resources: {a: {type: OS::Heat::TestResource, properties: {fail: true}}}"
    )
    create = ("stack", "create", "bad", "-t", str(template), "--wait")
    assert headgate_json(server, *create, code=3)["stack_status"] == "CREATE_FAILED"


def test_wait_has_a_timeout(server: ServerProcess, tmp_path: Path) -> None:
    create = ("stack", "create", "slow", "-t", TEMPLATE, "-e", ENVIRONMENT, "--wait")
    headgate(server, *create, "--timeout", "1s", code=6)


def test_a_rejected_hook_fails_the_stack_and_a_second_answer_is_refused(
    server: ServerProcess,
) -> None:
    create = ("stack", "create", "refused", "-t", TEMPLATE, "-e", ENVIRONMENT)
    headgate(server, *create, "--until-waiting", code=5)
    (hook,) = headgate_json(server, "hook", "list", "--stack", "refused")
    stale = headgate(server, "hook", "continue", hook["id"], "--digest", "f" * 64, code=1)
    assert "digest differs" in stale
    answered = headgate_json(server, "hook", "reject", hook["id"][:13], "--reason", "not today")
    assert (answered["decision"], answered["reason"]) == ("reject", "not today")
    assert headgate(server, "watch", "refused", code=3)
    assert "not today" in headgate(server, "why", "refused")
    assert "already answered: reject" in headgate(server, "hook", "continue", hook["id"], code=1)
    assert "reject" in headgate(server, "hook", "list", "--stack", "refused", "--state", "all")


def test_a_delete_waits_at_a_hook_and_continues(server: ServerProcess, tmp_path: Path) -> None:
    environment = tmp_path / "env.yaml"
    environment.write_text("resource_registry: {resources: {app: {hooks: pre-delete}}}")
    create = ("stack", "create", "kept", "-t", TEMPLATE, "-e", str(environment), "--wait")
    headgate(server, *create)
    stack = headgate_json(server, "stack", "delete", "kept", "-y", "--until-waiting", code=5)
    assert stack["stack_status"] == "DELETE_IN_PROGRESS"
    headgate(server, "hook", "continue", "kept:app:pre-delete")
    assert headgate(server, "watch", stack["id"])
    assert "kept" not in headgate(server, "stack", "list")


def test_an_update_with_files_environments_and_breakpoints(
    server: ServerProcess, tmp_path: Path
) -> None:
    template, one, two = tmp_path / "t.yaml", tmp_path / "one.yaml", tmp_path / "two.yaml"
    (tmp_path / "motd").write_text("hello")
    (tmp_path / "secret").write_text("from a file")
    template.write_text(
        "heat_template_version: 2018-08-31\n"
        "parameters: {a: {type: string}, b: {type: string, default: b}}\n"
        "resources:\n"
        "  x: {type: OS::Heat::TestResource, properties: {value: {list_join: [' ', ["
        "{get_file: motd}, {get_param: a}, {get_param: b}]]}}}\n"
        "outputs: {x: {value: {get_attr: [x, output]}}}\n"
    )
    one.write_text("parameters: {a: one, b: one}")
    two.write_text("parameters: {a: two}")
    output = headgate_json(server, "stack", "create", "files", "-t", str(template), "-e", str(one),
                  "-e", str(two), "--tag", "red", "--tag", "blue", "--wait")  # fmt: skip
    assert output["outputs"][0]["output_value"] == "hello two one"
    assert output["tags"] == ["red", "blue"]
    update = ("stack", "update", "files", "--existing", "--parameter-file",
              f"a={tmp_path / 'secret'}", "--break-at", "x:pre-update")  # fmt: skip
    held = headgate_json(server, *update, "--until-waiting", code=5)
    assert held["stack_status"] == "UPDATE_IN_PROGRESS"
    headgate(server, "hook", "continue", "files:x")
    assert headgate(server, "watch", "files")
    assert "hello from a file one" in headgate(server, "stack", "show", "files")
    found = headgate_json(server, "stack", "list", "--tag", "red", "--status", "UPDATE_COMPLETE",
                   "--status", "CREATE_FAILED")  # fmt: skip
    assert [stack["stack_name"] for stack in found] == ["files"]


def test_graphs_and_types_are_shown(server: ServerProcess) -> None:
    headgate(server, "stack", "create", "seen-through", "-t", TEMPLATE, "--wait")
    lines = headgate(server, "graph", "seen-through").splitlines()
    assert [line.split()[1] for line in lines] == ["CREATE_COMPLETE", "secret", "app"]
    assert "label=" in headgate(server, "graph", "seen-through", "--dot")
    assert {node["state"] for node in headgate_json(server, "graph", "seen-through")["nodes"]} == {
        "done"
    }
    assert "OS::Heat::RandomString" in headgate(server, "type", "list")
    assert "character_classes" in headgate(server, "type", "show", "OS::Heat::RandomString")
    near = headgate(server, "type", "show", "OS::Heat::RandomStrin", code=1)
    assert "OS::Heat::RandomString" in near


def test_a_delete_by_another_user_ends_the_wait_for_a_create(server: ServerProcess) -> None:
    create = ("stack", "create", "taken", "-t", TEMPLATE, "-e", ENVIRONMENT, "--wait")
    with running_command(*create, server=server, stdout=PIPE, stderr=PIPE) as waiting:
        deadline = time.monotonic() + PATIENCE
        while not any(
            "taken" in hook["stack_name"] for hook in headgate_json(server, "hook", "list")
        ):
            assert time.monotonic() < deadline
        headgate(server, "stack", "delete", "taken", "--yes")
        _, complaint = waiting.communicate(timeout=60)
    assert waiting.returncode == 3 and "another action superseded this one: DELETE" in complaint


def test_output_to_a_pipe_has_no_escape_sequences(server: ServerProcess) -> None:
    environ = os.environ | {"TERM": "xterm-256color"}
    listing = command("type", "list", server=server)
    done = subprocess.run(listing, capture_output=True, text=True, timeout=60, env=environ)
    assert done.returncode == 0 and "\x1b" not in done.stdout + done.stderr


def test_subscriptions_are_created_shown_and_deleted(server: ServerProcess) -> None:
    output = headgate_json(
        server, "subscription", "create", "http://127.0.0.1:9/x", "--events", "headgate.*"
    )
    assert output["secret"].startswith("whsec_")
    result = headgate_json(server, "subscription", "show", output["id"])
    assert "secret" not in result and result["events"] == ["headgate.*"]
    tried = headgate_json(server, "subscription", "test", output["id"])
    assert tried["delivered"] is False and tried["reason"]
    changed = headgate_json(
        server, "subscription", "change", output["id"], "--remove-filter", "events", "--tags", "prod",
        "--unordered",
    )  # fmt: skip
    assert (changed["events"], changed["tags"], changed["ordered"]) == ([], ["prod"], False)
    assert changed["target"] == output["target"]
    listed = headgate(server, "subscription", "deliveries", output["id"], "--state", "dead")
    assert output["id"] not in listed
    headgate(server, "subscription", "delete", output["id"][:8], "--yes")
    assert output["id"] not in headgate(server, "subscription", "list")


def test_quiet_hours_are_set_and_removed(server: ServerProcess) -> None:
    output = headgate_json(
        server, "subscription", "create", "http://127.0.0.1:9/x", "--channel", "slack",
        "--events", "no.such.event", "--quiet-hours", "22:00-07:00", "--timezone", "Europe/Berlin",
    )  # fmt: skip
    quiet = output["quiet_hours"]
    assert (quiet["from"], quiet["to"], quiet["timezone"]) == ("22:00", "07:00", "Europe/Berlin")
    assert output["ordered"] is False
    change = ("subscription", "change", output["id"])
    later = headgate_json(server, *change, "--quiet-hours", "23:30-06:00", "--days", "mon-wed, sun")
    assert later["quiet_hours"]["from"] == "23:30"
    assert later["quiet_hours"]["days"] == ["mon", "tue", "wed", "sun"]
    assert headgate_json(server, *change, "--no-quiet-hours")["quiet_hours"] is None
    daily = ("--digest", "daily", "--digest-at", "08:00", "--timezone", "Europe/Berlin")
    stored = {"every": "daily", "at": "08:00", "timezone": "Europe/Berlin"}
    assert headgate_json(server, *change, *daily)["digest"] == stored
    nine = {"every": "daily", "at": "09:00", "timezone": "Asia/Tokyo"}
    zone = ("--digest", "daily", "--timezone", "Asia/Tokyo")
    for more in ((), ("--quiet-hours", "22:00-07:00")):
        assert headgate_json(server, *change, *zone, *more)["digest"] == nine
    headgate_json(server, *change, "--no-quiet-hours")
    assert headgate_json(server, *change, "--digest", "15m")["digest"]["every"] == "15m"
    assert headgate_json(server, *change, "--no-digest")["digest"] is None
    headgate(server, "subscription", "delete", output["id"], "--yes")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("stack", "show", "nope"), 1, "could not be found"),
        (("stack", "create", "x", "-t", "/nope.yaml"), 1, "/nope.yaml: cannot be read"),
        (("stack", "update", "x"), 2, "--existing"),
        (("hook", "continue", "nope"), 1, "headgate hook list"),
        (("stack", "delete", "nope", "--yes", "--timeout", "soon"), 2, '"soon" is not a duration'),
    ],
)
def test_invalid_input_is_a_one_line_error_with_an_exit_code(
    server: ServerProcess, words: tuple[str, ...], code: int, message: str
) -> None:
    assert message in headgate(server, *words, code=code)


def test_without_a_server_the_error_says_how_to_start_one() -> None:
    done = completed("stack", "list", "--url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "http://127.0.0.1:9" in done.stderr and "headgate serve" in done.stderr


def test_an_invalid_setting_is_refused_by_name(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("[server]\nlistne = 1\n")
    done = completed("serve", "--config", str(config))
    assert done.returncode == 1 and "listne" in done.stderr and "listen" in done.stderr


def test_a_second_server_on_one_data_directory_is_refused(server: ServerProcess) -> None:
    data = str(server.folder / "data")
    done = completed("serve", "--listen", "127.0.0.1:0", "--data-dir", data)
    assert done.returncode == 1 and str(server.pid) in done.stderr


def test_the_demo_verifies_itself() -> None:
    done = subprocess.run(command("demo"), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("Starting a server with PostgreSQL")
    assert "All checks passed." in done.stdout


def test_a_template_is_validated_with_its_files(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    template, inner = tmp_path / "t.yaml", tmp_path / "sub" / "web.yaml"
    template.write_text(
        "{heat_template_version: 2018-08-31, resources: {web: {type: sub/web.yaml}}}"
    )
    inner.write_text(
        "{heat_template_version: 2018-08-31, parameters: {size: {type: number, default: 3}},"
        " resources: {x: {type: My::Thing, properties: {value: {get_file: run.sh}}}}}"
    )
    (tmp_path / "sub" / "run.sh").write_text("#!")
    environment = tmp_path / "e.yaml"
    environment.write_text("resource_registry: {My::Thing: OS::Heat::TestResource}")
    validate = ("template", "validate", "-t", str(template), "--show-nested")
    result = headgate(server, *validate, "-e", str(environment), "--ignore-errors", "99001")
    assert "web/size" in result
    output = headgate(server, *validate, code=1)
    place = "resources.web<sub/web.yaml>.resources.x.type"
    assert f"{place}: The Resource Type (My::Thing) could not be found." in output
    done = completed(*validate, "--json", server=server)
    (finding,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, finding["place"]) == (1, place)
    assert finding["reason"] == "The Resource Type (My::Thing) could not be found."


def test_warnings_and_errors_name_file_line_and_column(
    server: ServerProcess, tmp_path: Path
) -> None:
    template = tmp_path / "t.yaml"
    text = "heat_template_version: 2018-08-31\nresources: {}\noutputs:\n  o: {value: 1}\n  o: {value: 2}\n"
    template.write_text(text)
    warning = f'headgate: warning: {template}:5:3: The key "o" is given twice'
    for change in (
        ("template", "validate"),
        ("stack", "create", "warned", "--dry-run"),
        ("stack", "create", "warned", "--wait"),
        ("stack", "update", "warned", "--dry-run"),
        ("stack", "update", "warned", "--wait"),
    ):
        strict = completed(*change, "-t", str(template), "--strict", server=server)
        assert strict.returncode == 1, strict
        assert strict.stderr.startswith(f"headgate: {template}:5:3: "), strict
        done = completed(*change, "-t", str(template), server=server)
        assert done.returncode == 0, done
        assert done.stderr.startswith(warning), done
        assert done.stderr.splitlines()[1:] == ["      o: {value: 2}", "      ^"], done
    template.write_text(text.replace("{value: 2}", "{}"))
    done = completed("stack", "update", "warned", "-t", str(template), server=server)
    assert done.returncode == 1
    first, *_, error, quote, caret = done.stderr.splitlines()
    assert first.startswith(warning)
    assert error.startswith(f"headgate: {template}:5:3: outputs.o: ")
    assert [quote, caret] == ["      o: {}", "      ^"]
