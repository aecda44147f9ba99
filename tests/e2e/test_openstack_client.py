"""The unmodified `openstack` command line waits for the end of its requests, in every status."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.client_calls.command_line import TEMPLATE, CommandLineUser
from tests.e2e.server_process import running_process
from tests.support.client_settings import without_authentication
from tests.support.http_things import thing
from tests.support.openstack_shell import OpenstackShell
from tests.support.program import PATIENCE, ServerProcess
from tests.support.thing_process import thing_process

EXAMPLE = Path(__file__).parents[2] / "examples" / "wait-for-a-signal"


@pytest.fixture
def client(server: ServerProcess, tmp_path: Path) -> Iterator[CommandLineUser]:
    way = without_authentication(server.url, tmp_path.name)
    with OpenstackShell(way.options, os.environ) as shell:
        yield CommandLineUser(shell, tmp_path)


def test_wait_for_create_update_and_delete(client: CommandLineUser) -> None:
    template = client.file("t.yaml", TEMPLATE)
    output = client.run("stack", "create", "-t", template, "--wait", "--poll", "1", "life")
    assert "CREATE_COMPLETE  Stack CREATE completed successfully" in output
    output = client.run("stack", "update", "--existing", "--parameter", "size=20", "--wait", "life")
    assert "UPDATE_COMPLETE  Stack UPDATE completed successfully" in output
    assert "Stack CREATE" not in output  # the status before
    client.run("stack", "delete", "--yes", "--wait", "life")
    assert client.show("stack", "list") == []


def test_wait_ends_at_a_stopped_stack_with_the_way_to_resume(client: CommandLineUser) -> None:
    template = client.file("t.yaml", TEMPLATE)
    rule = "{on: pre-create, timeout: 1s}"
    environment = client.file(
        "e.yaml", f"resource_registry: {{resources: {{app: {{hooks: [{rule}]}}}}}}"
    )
    output = client.run("stack", "create", "-t", template, "-e", environment, "--wait",
                       "--poll", "1", "held", code=1)  # fmt: skip
    assert "CREATE_FAILED  Stopped: app" in output and "update the stack to continue" in output
    assert client.show("stack", "show", "held")["stack_status"] == "CREATE_STOPPED"


def test_a_stack_continues_after_signals_and_answers(client: CommandLineUser) -> None:
    """The example of the how-to page."""
    template = str(EXAMPLE / "ready.yaml")
    client.run("stack", "create", "-t", template, "web")
    handle = ("stack", "resource", "signal", "web", "ready", "--data")
    output = client.run(*handle, '{"status": "READY"}', code=1)
    assert "status: is not known. Send SUCCESS or FAILURE." in output
    client.run(*handle, '{"id": "web-1", "data": "10.0.0.11"}')
    command = client.show("stack", "output", "show", "web", "signal_command")["output_value"]
    machine = [str(EXAMPLE / "machine.sh"), "web-2", "10.0.0.12"]
    subprocess.run(machine, env=os.environ | {"SIGNAL_COMMAND": command}, check=True, timeout=60)
    client.until("web", "CREATE_COMPLETE")
    addresses = client.show("stack", "output", "show", "web", "addresses")["output_value"]
    assert addresses == {"web-1": "10.0.0.11", "web-2": "10.0.0.12"}
    client.run("stack", "delete", "--yes", "--wait", "web")


HTTP = """
[resource_types.http]
enabled = true
allow = ["127.0.0.0/8"]
"""


def test_an_update_with_converge_repairs_what_was_changed_outside(tmp_path: Path) -> None:
    with thing_process(tmp_path) as service, running_process(settings=HTTP) as server:
        way = without_authentication(server.url, tmp_path.name)
        with OpenstackShell(way.options, os.environ) as shell:
            client = CommandLineUser(shell, tmp_path)
            resources = {name: thing(service) for name in ("changed", "gone")}  # type: ignore[arg-type]
            document = {"heat_template_version": "2018-08-31", "resources": resources}
            template = client.file("t.json", json.dumps(document))
            client.run("stack", "create", "-t", template, "--wait", "--poll", "1", "web")
            before = {
                name: client.show("stack", "resource", "show", "web", name)["physical_resource_id"]
                for name in resources
            }
            with service.changing() as state:
                state["objects"][before["changed"]]["size"] = 9
                del state["objects"][before["gone"]]
            update = ("stack", "update", "--existing", "--wait", "web")
            client.run(*update)  # without it, nothing is observed
            assert [one["size"] for one in service.objects.values()] == [9]
            client.run(*update, "--converge")
            assert [one["size"] for one in service.objects.values()] == [1, 1]
            after = client.show("stack", "resource", "show", "web", "gone")["physical_resource_id"]
            assert set(service.objects) == {before["changed"], after}


NESTED = """
heat_template_version: 2018-08-31
parameters: {many: {type: number}}
resources:
  web: {type: web.yaml, properties: {size: {get_param: many}}}
  own: {type: My::Db}
"""
WEB = """
heat_template_version: 2018-08-31
description: A server
parameters: {size: {type: number}, name: {type: string, default: n}}
resources: {db: {type: My::Db}}
"""
DB = """
heat_template_version: 2018-08-31
parameters: {key: {type: string, hidden: true, default: k}}
resources: {x: {type: OS::Heat::None}}
"""


def test_a_template_with_nested_templates_is_validated_and_created(client: CommandLineUser) -> None:
    template = client.file("t.yaml", NESTED)
    client.file("web.yaml", WEB)
    client.file("db.yaml", DB)
    first = client.file("e.yaml", "resource_registry: {My::Db: db.yaml}")
    second = client.file(
        "f.yaml",
        "{parameters: {many: 2}, parameter_defaults: {name: m, key: planted},"
        " parameter_merge_strategies: {name: merge}}",
    )
    validate = ("orchestration", "template", "validate", "-t", template)
    result = client.show(
        *validate, "-e", first, "-e", second, "--show-nested", "--ignore-errors", "99001"
    )
    web, own = (result["NestedParameters"][name] for name in ("web", "own"))
    assert web["Type"].endswith("/web.yaml") and web["Description"] == "A server"
    assert web["Parameters"]["size"]["Value"] == 2
    assert web["Parameters"]["name"]["Default"] == "m"
    assert own["Type"] == "My::Db" and web["NestedParameters"]["db"] == own
    assert own["Parameters"]["key"]["Default"] == "******" and "planted" not in str(result)
    output = client.run(*validate, "--ignore-errors", "5", code=1)
    assert "Invalid codes in ignore_errors" in output
    output = client.run(*validate, code=1)
    assert "The Resource Type (My::Db) could not be found." in output and "web.yaml>" in output
    output = client.run(
        "stack", "create", "-t", template, "-e", first, "-e", second, "--wait", "tree"
    )
    assert "CREATE_COMPLETE" in output
    (result,) = client.show("stack", "list")
    assert result["Stack Name"] == "tree", "those inside are not among them"


def test_environment_files_are_merged_in_order(client: CommandLineUser) -> None:
    client.file("inside.yaml", "heat_template_version: 2018-08-31\n"
        "resources: {x: {type: 'My::Value', properties: {value: 1}}}")  # fmt: skip
    template = client.file(
        "t.yaml",
        """
heat_template_version: 2018-08-31
parameters:
  l: {type: comma_delimited_list}
  j: {type: json}
  s: {type: string}
  secret: {type: string}
resources:
  web: {type: 'My::Server'}
  v: {type: 'My::Value', properties: {value: [{get_param: l}, {get_param: j}, {get_param: s}]}}
outputs: {all: {value: {get_attr: [v, value]}}}
""",
    )
    one = client.file(
        "one.yaml",
        """
parameters: {l: "a,b", j: {x: {y: [1]}}, s: one, secret: hush}
parameter_merge_strategies: {default: merge, j: deep_merge}
encrypted_param_names: [secret]
resource_registry: {'My::Server': inside.yaml, 'My::V*': 'OS::Heat::None'}
""",
    )
    two = client.file(
        "two.yaml",
        """
parameters: {l: [c], j: {x: {y: [2], z: 1}}, s: two}
resource_registry:
  'My::V*': 'OS::Heat::V*'
  resources: {web: {x: {hooks: pre-create}}}
""",
    )
    client.run("stack", "create", "-t", template, "-e", one, "-e", two, "merged")
    listed = client.until_listed("merged", {"v": "CREATE_COMPLETE", "x": "INIT_COMPLETE"})
    assert listed["x"]["resource_type"] == "My::Value"
    result = client.show("stack", "show", "merged")
    assert result["parameters"]["secret"] == "******"
    output = client.show("stack", "output", "show", "merged", "all")["output_value"]
    merged = json.loads(output) if isinstance(output, str) else output
    assert merged == [["a", "b", "c"], {"x": {"y": [1, 2], "z": 1}}, "onetwo"]


def test_each_command_prints_all_errors_and_stores_nothing(client: CommandLineUser) -> None:
    client.file("in.yaml", "heat_template_version: 2018-08-31\n"
        "resources: {x: {type: OS::Heat::Value, properties: {vaule: 1}}, y: {}}")  # fmt: skip
    template = client.file(
        "wrong.yaml",
        """
heat_template_version: 2018-08-31
parameters: {size: {type: nummer}}
resources:
  form: {typ: OS::Heat::None}
  meaning: {type: OS::Heat::Value, properties: {vaule: {get_param: size}}}
  nested: {type: in.yaml}
  held: {type: OS::Heat::None, hooks: pre-creat}
outputs: {o: {value: {get_attr: [meaning, vaule]}}}
""",
    )
    environment = client.file("e.yaml", "parameters: {sise: 1}")
    messages = [
        "parameters.size: Invalid type", "resources.form: ",
        "resources.meaning.properties: Unknown Property vaule", "in.yaml>.resources.y: ",
        "in.yaml>.resources.x.properties: Unknown Property vaule",
        "resources.held.hooks: Invalid hook type", "outputs.o.value.get_attr: ",
        "The Parameter (sise) was not defined",
    ]  # fmt: skip
    for words in (
        ("stack", "create", "-t", template, "-e", environment, "wrong"),
        ("stack", "create", "-t", template, "-e", environment, "--dry-run", "wrong"),
        ("orchestration", "template", "validate", "-t", template, "-e", environment,
         "--show-nested", "--ignore-errors", "99001"),
    ):  # fmt: skip
        output = client.run(*words, code=1).replace(": : ", ": ")
        assert [one for one in messages if one not in output] == [], output
    assert client.show("stack", "list") == []


KEYED = """
heat_template_version: 2026-12-01
resources:
  base: {type: OS::Heat::TestResource, properties: {value: b}}
  web:
    type: OS::Heat::TestResource
    for_each: [a, b]
    depends_on: base
    properties: {value: "${each.key}"}
"""


def test_resources_with_for_each_have_names_without_quotes(client: CommandLineUser) -> None:
    template = client.file("t.yaml", KEYED)
    client.run("stack", "create", "-t", template, "--pre-create", "web-b", "keyed")

    deadline = time.monotonic() + PATIENCE
    while not (waiting := client.show("stack", "hook", "poll", "keyed")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(waiting) == 1 and "web-b" in waiting[0].values()
    client.run("stack", "hook", "clear", "--pre-create", "keyed", "web-b")
    client.until("keyed", "CREATE_COMPLETE")
    assert sorted(client.physical_ids("keyed")) == ["base", "web-a", "web-b"]
    (found,) = client.show("stack", "resource", "list", "--filter", "name=web-a", "keyed")
    shown = client.show("stack", "resource", "show", "keyed", "web-a")
    assert shown["physical_resource_id"] == found["physical_resource_id"]
    assert shown["headgate_resource_name"] == 'web["a"]'
    shown = client.show("stack", "resource", "show", "keyed", "base")
    assert sorted(shown["required_by"]) == ["web-a", "web-b"]
    events = client.show("stack", "event", "list", "keyed", "--resource", "web-a")
    assert {one["resource_name"] for one in events} == {"web-a"}
    shown = client.show("stack", "event", "show", "keyed", "web-a", events[0]["id"])
    assert shown["resource_name"] == "web-a"
    client.run("stack", "resource", "mark", "unhealthy", "keyed", "web-a", "broken")
    changed = client.run("stack", "update", "--existing", "--dry-run", "keyed")
    assert "web-a" in changed
    client.run("stack", "update", "--existing", "--wait", "keyed")
    before = shown["physical_resource_id"]
    assert client.physical_ids("keyed")["web-a"] != before
    client.run("stack", "delete", "--yes", "--wait", "keyed")
