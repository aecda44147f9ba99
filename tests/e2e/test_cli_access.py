"""Tokens from the command line: the first one, those after it, and none any more."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.command_line import TEMPLATE, command
from tests.support.program import ServerProcess


@pytest.fixture(scope="module")
def guarded() -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory(prefix="headgate-e2e-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs as another account
        made = ServerProcess(folder, settings='[auth]\nmode = "tokens"\n')
        made.start()
        yield made
        assert made.stop() == 0, made.log.read_text()[-3000:]


def said(
    *words: str,
    server: ServerProcess | None = None,
    code: int = 0,
    typed: str = "",
    who: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Standard output and error. who: variables that let one in."""
    done = subprocess.run(
        command(*words, server=server), capture_output=True, text=True, timeout=60,
        input=typed, env=os.environ | {"HEADGATE_PROJECT": "web", "NO_COLOR": "1", **(who or {})},
    )  # fmt: skip
    assert done.returncode == code, (words, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_from_the_first_token_to_the_last(guarded: ServerProcess) -> None:
    folder = ("--data-dir", str(guarded.folder / "data"))
    _, wrong = said("stack", "list", server=guarded, code=1)
    assert "authentication required: no token given" in wrong and "HEADGATE_TOKEN" in wrong

    _, wrong = said("admin", "create-token", "root", "--role", "admin", *folder, code=2)
    assert "--project NAME, or use --everywhere" in wrong
    _, wrong = said("admin", "create-token", "x", "--role", "bos", "--everywhere", *folder, code=1)
    assert "roles: none of these roles grants any permission" in wrong
    first, told = said("admin", "create-token", "root", "--role", "admin", "--everywhere", *folder)
    assert first.startswith("hgt_") and first.count("\n") == 1
    assert "not shown again" in told
    root = {"HEADGATE_TOKEN": first.strip()}

    made, _ = said("token", "create", "ci", "--role", "author", "--expires-in", "90d",
                   "--json", server=guarded, who=root)  # fmt: skip
    author = {"HEADGATE_TOKEN": json.loads(made)["token"]}
    said("token", "create", "ann", "--role", "reader", "--role", "dba", "--password",
         server=guarded, typed="a good password\n", who=root)  # fmt: skip
    reader = {"HEADGATE_USER": "ann", "HEADGATE_PASSWORD": "a good password"}
    known, _ = said("token", "whoami", "--json", server=guarded, who=reader)
    assert json.loads(known)["roles"] == ["reader", "dba"]

    create = ("stack", "create", "s", "-t", TEMPLATE, "--wait")
    _, wrong = said(*create, server=guarded, code=1, who=reader)
    assert "ann has no right to write here. It takes the role author" in wrong
    said(*create, server=guarded, who=author)
    shown, _ = said("stack", "show", "s", "--json", server=guarded, who=reader)
    assert json.loads(shown)["stack_owner"] == "ci"

    listed, _ = said("token", "list", "--json", server=guarded, who=root)
    ids = {one["name"]: one["id"] for one in json.loads(listed)}
    assert set(ids) == {"ci", "ann"}
    _, wrong = said("token", "revoke", author["HEADGATE_TOKEN"], server=guarded, code=2, who=root)
    assert "this is the token itself" in wrong
    said("token", "revoke", ids["ci"], server=guarded, who=root)
    _, wrong = said("stack", "list", server=guarded, code=1, who=author)
    assert "invalid, revoked or expired" in wrong
    gone, _ = said("token", "list", "--gone", "--json", server=guarded, who=root)
    assert {one["name"]: one["revoked_by"] for one in json.loads(gone)} == {
        "ci": "root", "ann": None,
    }  # fmt: skip
    quota, _ = said("quota", server=guarded, who=reader)
    assert "stacks_per_project" in quota
    log = guarded.log.read_text()
    assert first.strip() not in log and "a good password" not in log
