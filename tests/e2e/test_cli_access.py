"""Tokens on the command line: create the first one, use it, and revoke it."""

import json
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.command_line import TEMPLATE, completed
from tests.support.program import ServerProcess
from tests.support.terminal import terminal


@pytest.fixture(scope="module")
def token_server() -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory(prefix="headgate-e2e-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs as another account
        process = ServerProcess(folder, settings='[auth]\nmode = "tokens"\n')
        process.start()
        yield process
        assert process.stop() == 0, process.log.read_text()[-3000:]


def run_command(
    *words: str,
    server: ServerProcess | None = None,
    code: int = 0,
    typed: str = "",
    environment: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Standard output and error. environment: variables for authentication."""
    variables = {"HEADGATE_PROJECT": "web", "NO_COLOR": "1", **(environment or {})}
    done = completed(*words, server=server, typed=typed, environment=variables)
    assert done.returncode == code, (words, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_tokens_are_created_used_and_revoked(token_server: ServerProcess) -> None:
    folder = ("--data-dir", str(token_server.folder / "data"))
    _, error = run_command("stack", "list", server=token_server, code=1)
    assert "authentication required" in error and "HEADGATE_TOKEN" in error

    _, error = run_command("admin", "create-token", "root", "--role", "admin", *folder, code=2)
    assert "--project NAME, or use --everywhere" in error
    _, error = run_command(
        "admin", "create-token", "x", "--role", "bos", "--everywhere", *folder, code=1
    )
    assert "roles: none of these roles grants any permission" in error
    first, notice = run_command(
        "admin", "create-token", "root", "--role", "admin", "--everywhere", *folder
    )
    assert first.startswith("hgt_") and first.count("\n") == 1
    assert "not shown again" in notice
    root = {"HEADGATE_TOKEN": first.strip()}

    secret, _ = run_command("token", "create", "ci", "--role", "author", "--expires-in", "90d",
                   "--json", server=token_server, environment=root)  # fmt: skip
    author = {"HEADGATE_TOKEN": json.loads(secret)["token"]}
    run_command("token", "create", "ann", "--role", "reader", "--role", "dba", "--password",
         server=token_server, typed="a good password\n", environment=root)  # fmt: skip
    reader = {"HEADGATE_USER": "ann", "HEADGATE_PASSWORD": "a good password"}
    known, _ = run_command("token", "whoami", "--json", server=token_server, environment=reader)
    assert json.loads(known)["roles"] == ["reader", "dba"]

    create = ("stack", "create", "s", "-t", TEMPLATE, "--wait")
    _, error = run_command(*create, server=token_server, code=1, environment=reader)
    assert "ann has no right to write here. The role author is required" in error
    run_command(*create, server=token_server, environment=author)
    shown, _ = run_command("stack", "show", "s", "--json", server=token_server, environment=reader)
    assert json.loads(shown)["stack_owner"] == "ci"

    listed, _ = run_command("token", "list", "--json", server=token_server, environment=root)
    ids = {one["name"]: one["id"] for one in json.loads(listed)}
    assert set(ids) == {"ci", "ann"}
    _, error = run_command(
        "token", "revoke", author["HEADGATE_TOKEN"], server=token_server, code=2, environment=root
    )
    assert "this is the token itself" in error
    run_command("token", "revoke", ids["ci"][:8], "--yes", server=token_server, environment=root)
    _, error = run_command("stack", "list", server=token_server, code=1, environment=author)
    assert "invalid, revoked or expired" in error
    gone, _ = run_command("token", "list", "--all", "--json", server=token_server, environment=root)
    assert {one["name"]: one["revoked_by"] for one in json.loads(gone)} == {
        "ci": "root", "ann": None,
    }  # fmt: skip
    quota, _ = run_command("quota", server=token_server, environment=reader)
    assert "stacks_per_project" in quota
    log = token_server.log.read_text()
    assert first.strip() not in log and "a good password" not in log


def test_a_login_is_saved_and_used(token_server: ServerProcess, tmp_path: Path) -> None:
    folder = ("--data-dir", str(token_server.folder / "data"))
    token, _ = run_command("admin", "create-token", "lin", "--role", "admin", "--project", "web", *folder)  # fmt: skip
    file = tmp_path / "settings" / "contexts.json"
    mine = {"HEADGATE_CONTEXTS": str(file)}

    _, error = run_command(
        "login", server=token_server, code=1, typed="hgt_wrong\n", environment=mine
    )
    assert "the server refused the token; nothing was saved" in error and not file.exists()
    printed, _ = run_command("login", server=token_server, typed=token, environment=mine)
    assert f"Signed in to {token_server.url}, project web, as lin." in printed
    assert token.strip() not in printed and stat.S_IMODE(file.stat().st_mode) == 0o600
    who, _ = run_command("token", "whoami", "-o", "jsonpath={.name}", environment=mine)
    assert who == "lin\n"

    shown, _ = run_command("context", "show", "--json", environment=mine)
    assert json.loads(shown) == {
        "name": "default", "current": True, "url": token_server.url, "project": "web", "user": "",
        "token": "saved", "expires_at": "",
    }  # fmt: skip
    # Another server does not receive the token.
    _, error = run_command("token", "whoami", "--url", "http://127.0.0.1:9", code=1, environment=mine)  # fmt: skip
    assert "http://127.0.0.1:9" in error
    other = token_server.url.replace("127.0.0.1", "localhost")
    _, error = run_command("stack", "list", "--url", other, code=1, environment=mine)
    assert "authentication required" in error
    _, error = run_command("stack", "list", "--url", other, "--context", "default", code=2, environment=mine)  # fmt: skip
    assert "Use either --context or --url." in error

    run_command("login", "--context", "second", server=token_server, typed=token, environment=mine)
    listed, _ = run_command("context", "list", "-o", "json", environment=mine)
    assert [(one["name"], one["current"]) for one in json.loads(listed)] == [
        ("default", False), ("second", True),
    ]  # fmt: skip
    run_command("context", "use", "default", environment=mine)
    assert "* " in run_command("context", "list", environment=mine)[0]
    run_command("context", "delete", "default", environment=mine)
    _, error = run_command("context", "use", "default", code=1, environment=mine)
    assert 'there is no context "default"; saved: second' in error
    _, error = run_command("context", "show", code=1, environment=mine)
    assert "there is no current context" in error
    _, error = run_command("stack", "list", "--context", "default", code=2, environment=mine)
    assert "there is no context" in error


def test_a_login_asks_on_a_terminal_and_does_not_show_the_token(
    token_server: ServerProcess, tmp_path: Path
) -> None:
    folder = ("--data-dir", str(token_server.folder / "data"))
    token, _ = run_command("admin", "create-token", "may", "--role", "reader", "--everywhere", *folder)  # fmt: skip
    mine = {"HEADGATE_CONTEXTS": str(tmp_path / "contexts.json")}
    with terminal("login", server=token_server, columns=200, environment=mine) as user:
        user.read_until("Token (empty if the server needs none):")
        user.type_hidden(token)
        assert ", as may." in user.wait() and token.strip() not in user.screen
