"""The unmodified `openstack` command line waits for what it began, and ends at whatever came of it."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.walks.command_line import TEMPLATE, Walk
from tests.support.openstack_shell import OpenstackShell
from tests.support.program import ServerProcess
from tests.support.ways import unasked

EXAMPLE = Path(__file__).parents[2] / "examples" / "wait-for-a-signal"


@pytest.fixture
def client(server: ServerProcess, tmp_path: Path) -> Iterator[Walk]:
    way = unasked(server.url, tmp_path.name)
    with OpenstackShell(way.options, os.environ) as shell:
        yield Walk(shell, tmp_path)


def test_waiting_for_create_update_and_delete(client: Walk) -> None:
    template = client.file("t.yaml", TEMPLATE)
    said = client.says("stack", "create", "-t", template, "--wait", "--poll", "1", "life")
    assert "CREATE_COMPLETE  Stack CREATE completed successfully" in said
    said = client.says("stack", "update", "--existing", "--parameter", "size=20", "--wait", "life")
    assert "UPDATE_COMPLETE  Stack UPDATE completed successfully" in said
    assert "Stack CREATE" not in said  # which was before
    client.says("stack", "delete", "--yes", "--wait", "life")
    assert client.shows("stack", "list") == []


def test_waiting_ends_at_a_stopped_stack_and_says_how_to_go_on(client: Walk) -> None:
    template = client.file("t.yaml", TEMPLATE)
    rule = "{on: pre-create, timeout: 1s}"
    environment = client.file(
        "e.yaml", f"resource_registry: {{resources: {{app: {{hooks: [{rule}]}}}}}}"
    )
    said = client.says("stack", "create", "-t", template, "-e", environment, "--wait",
                       "--poll", "1", "held", code=1)  # fmt: skip
    assert "CREATE_FAILED  Stopped: app" in said and "update the stack to resume" in said
    assert client.shows("stack", "show", "held")["stack_status"] == "CREATE_STOPPED"


def test_a_stack_goes_on_when_machines_and_people_signal(client: Walk) -> None:
    """The example of the how-to, as it is."""
    template = str(EXAMPLE / "ready.yaml")
    client.says("stack", "create", "-t", template, "web")
    handle = ("stack", "resource", "signal", "web", "ready", "--data")
    said = client.says(*handle, '{"status": "READY"}', code=1)
    assert "status: is not known. Send SUCCESS or FAILURE." in said
    client.says(*handle, '{"id": "web-1", "data": "10.0.0.11"}')
    told = client.shows("stack", "output", "show", "web", "signal_command")["output_value"]
    machine = [str(EXAMPLE / "machine.sh"), "web-2", "10.0.0.12"]
    subprocess.run(machine, env=os.environ | {"SIGNAL_COMMAND": told}, check=True, timeout=60)
    client.until("web", "CREATE_COMPLETE")
    addresses = client.shows("stack", "output", "show", "web", "addresses")["output_value"]
    assert addresses == {"web-1": "10.0.0.11", "web-2": "10.0.0.12"}
    client.says("stack", "delete", "--yes", "--wait", "web")


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


def test_a_template_with_nested_ones_is_validated_and_made(client: Walk) -> None:
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
    shown = client.shows(
        *validate, "-e", first, "-e", second, "--show-nested", "--ignore-errors", "99001"
    )
    web, own = (shown["NestedParameters"][name] for name in ("web", "own"))
    assert web["Type"].endswith("/web.yaml") and web["Description"] == "A server"
    assert web["Parameters"]["size"]["Value"] == 2
    assert web["Parameters"]["name"]["Default"] == "m"
    assert own["Type"] == "My::Db" and web["NestedParameters"]["db"] == own
    assert own["Parameters"]["key"]["Default"] == "******" and "planted" not in str(shown)
    said = client.says(*validate, "--ignore-errors", "5", code=1)
    assert "Invalid codes in ignore_errors" in said
    said = client.says(*validate, code=1)
    assert "The Resource Type (My::Db) could not be found." in said and "web.yaml>" in said
    said = client.says(
        "stack", "create", "-t", template, "-e", first, "-e", second, "--wait", "tree"
    )
    assert "CREATE_COMPLETE" in said
    (shown,) = client.shows("stack", "list")
    assert shown["Stack Name"] == "tree", "those inside are not among them"


def test_environments_are_merged_in_their_order_as_their_files_say(client: Walk) -> None:
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
    client.says("stack", "create", "-t", template, "-e", one, "-e", two, "merged")
    shown = client.shows("stack", "show", "merged")
    assert shown["parameters"]["secret"] == "******"
    said = client.shows("stack", "output", "show", "merged", "all")["output_value"]
    merged = json.loads(said) if isinstance(said, str) else said
    assert merged == [["a", "b", "c"], {"x": {"y": [1, 2], "z": 1}}, "onetwo"]
    held = client.shows("stack", "resource", "list", "-n", "2", "merged")
    assert {one["resource_name"]: one["resource_type"] for one in held}["x"] == "OS::Heat::Value"


def test_all_that_is_wrong_is_printed_by_each_command_and_nothing_is_stored(client: Walk) -> None:
    client.file("in.yaml", "heat_template_version: 2018-08-31\n"
        "resources: {x: {type: OS::Heat::Value, properties: {vaule: 1}}, y: {}}")  # fmt: skip
    template = client.file(
        "wrong.yaml",
        """
heat_template_version: 2018-08-31
parameters: {size: {type: nummer}}
conditions: {bad: {not: nix}}
resources:
  form: {typ: OS::Heat::None}
  meaning: {type: OS::Heat::Value, properties: {vaule: {get_param: size}}}
  nested: {type: in.yaml}
  held: {type: OS::Heat::None, hooks: pre-creat}
outputs: {o: {value: {get_attr: [meaning, vaule]}}}
""",
    )
    environment = client.file("e.yaml", "parameters: {sise: 1}")
    told = [
        "parameters.size: Invalid type", "resources.form: ", "conditions.bad: ",
        "resources.meaning.properties: : Unknown Property vaule", "in.yaml>.resources.y: ",
        "in.yaml>.resources.x.properties: : Unknown Property vaule",
        "resources.held.hooks: Invalid hook type", "outputs.o.value.get_attr: ",
        "The Parameter (sise) was not defined",
    ]  # fmt: skip
    for words in (
        ("stack", "create", "-t", template, "-e", environment, "wrong"),
        ("stack", "create", "-t", template, "-e", environment, "--dry-run", "wrong"),
        ("orchestration", "template", "validate", "-t", template, "-e", environment,
         "--show-nested", "--ignore-errors", "99001"),
    ):  # fmt: skip
        said = client.says(*words, code=1)
        assert [one for one in told if one not in said] == [], said
    assert client.shows("stack", "list") == []
