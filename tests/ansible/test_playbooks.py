"""The playbooks of docs/how-to/use-ansible-and-terraform.md, with Ansible and the collection
openstack.cloud, on a real server.

`make test-ansible` runs these tests; `make test` does not, because it would have to install
Ansible.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command_line import headgate, headgate_json
from tests.support.page_commands import page_command
from tests.support.postgres import open_directory
from tests.support.program import ServerProcess

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "use-ansible-and-terraform.md"
CLOUDS, APPLY, DELETE = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.M | re.S)
BIN = ROOT / ".ansible" / "bin"
#: Seconds in which pip must have installed the packages of the page.
INSTALL_TIMEOUT = 1200
TEMPLATE = """
heat_template_version: 2018-08-31
parameters: {size: {type: number}}
resources:
  web: {type: OS::Heat::TestResource, properties: {value: {get_param: size}, fail: FAIL}}
outputs:
  size: {value: {get_param: size}}
"""

Play = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with open_directory() as folder:
        process = ServerProcess(folder)
        process.start()
        yield process
        assert process.stop() == 0, process.log.read_text()[-3000:]


@pytest.fixture
def play(server: ServerProcess, tmp_path: Path) -> Play:
    def run(
        playbook: str, *arguments: str, fail: str = "false", programs: Path = BIN
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "clouds.yaml").write_text(CLOUDS.replace("http://127.0.0.1:8004", server.url))
        (tmp_path / "web.yaml").write_text(TEMPLATE.replace("FAIL", fail))
        (tmp_path / "playbook.yaml").write_text(playbook)
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8",
            "ANSIBLE_HOME": str(tmp_path / "ansible"), "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_PYTHON_INTERPRETER": str(programs / "python"),
        }  # fmt: skip
        return subprocess.run(
            [programs / "ansible-playbook", "playbook.yaml", *arguments],
            cwd=tmp_path, env=environment,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run


def test_a_playbook_creates_updates_and_deletes_a_stack(server: ServerProcess, play: Play) -> None:
    for size, action in ((1, "CREATE"), (2, "UPDATE")):
        done = play(APPLY, "-e", f"size={size}")
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"size={size}" in done.stdout and f"status={action}_COMPLETE" in done.stdout
        assert "changed=1" in done.stdout
    for changed in (1, 0):
        done = play(DELETE)
        assert done.returncode == 0 and f"changed={changed}" in done.stdout, done.stdout
    assert headgate_json(server, "stack", "list") == []


def test_check_mode_changes_nothing(server: ServerProcess, play: Play) -> None:
    done = play(APPLY.partition("    - name: Show an output")[0], "--check", "-e", "size=1")
    assert done.returncode == 0 and "changed=1" in done.stdout, done.stdout + done.stderr
    assert headgate_json(server, "stack", "list") == []


def test_a_change_that_fails_fails_the_task(server: ServerProcess, play: Play) -> None:
    done = play(APPLY, "-e", "size=1", fail="true")
    assert done.returncode != 0 and "failed=1" in done.stdout, done.stdout
    assert "CREATE_FAILED" in headgate(server, "stack", "show", "web")


def test_the_page_installs_an_ansible_that_runs_its_playbook(
    server: ServerProcess, play: Play, tmp_path: Path
) -> None:
    """Of the newest versions that the command of the page allows, in an environment of its own."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=INSTALL_TIMEOUT)
    command = page_command("docs/how-to/use-ansible-and-terraform.md", "pip install")
    installed = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=INSTALL_TIMEOUT,
        env=os.environ | {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}"}, check=False,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stdout[-3000:] + installed.stderr
    done = play(APPLY, "-e", "size=1", programs=environment / "bin")
    assert done.returncode == 0 and "changed=1" in done.stdout, done.stdout + done.stderr
    assert [one["stack_name"] for one in headgate_json(server, "stack", "list")] == ["web"]
