"""The unmodified `openstack` command line waits for what it began, and ends at whatever came of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.walks.command_line import TEMPLATE, Walk
from tests.support.openstack_shell import OpenstackShell
from tests.support.program import ServerProcess
from tests.support.ways import unasked


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
