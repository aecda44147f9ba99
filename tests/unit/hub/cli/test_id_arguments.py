"""Each argument and option that takes an ID of Headgate accepts the beginning of one."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import typer.main
from aiohttp import web
from typer.testing import CliRunner

from hub.cli.main import app
from tests.unit.hub.cli.stub import Json, SentRequest, running_stub

#: What an argument names, by its name in the help.
KINDS = {
    "STACK": "stack",
    "STACK_ID": "stack",
    "HOOK": "hook",
    "SNAPSHOT": "snapshot",
    "BREAKPOINT": "breakpoint",
}
IDS = {
    kind: f"{number}f2a1b4c-0000-4000-8000-00000000000f"
    for number, kind in enumerate(
        ("stack", "hook", "snapshot", "breakpoint", "subscription", "delivery", "token")
    )
}
PREFIXES = {kind: one[:6] for kind, one in IDS.items()}
#: Of the group of a command, where the argument is named ID.
GROUPS = {"subscription": "subscription", "token": "token"}
#: IDs that the server does not give: those of providers and of Keystone, and of projects.
FOREIGN = {
    "stack from-resources": "TYPE ID...",
    "import": "TYPE ID...",
    "observation report": "ID...",
    "observation-credential set": "ID",
    "admin move-project": "PROJECT",
}
#: The database, and not the server, has the stack: tests/integration/audit_log/test_verification.py
OFFLINE = {"admin verify-audit": "STACK_ID"}
#: Further words of a command.
MORE: Mapping[str, str] = {
    "stack update": "--existing",
    "stack delete": "--yes",
    "stack abandon": "--yes",
    "stack run-to": "a",
    "stack breakpoints add": "a:pre-create",
    "stack diff": "--from 1 --to 2",
    "stack cancel": "--yes",
    "stack converge": "--yes",
    "stack snapshot delete": "--yes",
    "stack snapshot restore": "--yes",
    "resource show": "a",
    "resource mark-unhealthy": "a --yes",
    "resource protect": "a",
    "resource unprotect": "a",
    "resource signal": "a",
    "hook show": "-o json",
    "hook hand-over": "user:ann",
    "hook ignore": "--for 2h",
    "hook patch": "--set a=1",
    "hook progress": "--extend 2h",
    "subscription change": "--tags prod",
    "subscription delete": "--yes",
    "subscription redeliver": "--dead",
    "token revoke": "--yes",
}
#: Options that select objects.
OPTIONS = {
    ("hook list", "--stack"): "stack",
    **{
        (f"hook {answer}", "--stack"): "stack"
        for answer in ("continue", "repair", "ignore", "adopt", "step", "run", "patch", "progress",
                       "reject")
    },
    ("subscription redeliver", "--delivery"): "delivery",
}  # fmt: skip


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """A command, or all below a group, by path."""
    if not hasattr(command, "commands"):
        yield " ".join(path), command
        return
    for name in command.commands:
        yield from commands(command.commands[name], (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


def is_id(parameter: Any) -> bool:
    """Whether it takes an ID. A resource has one of its provider."""
    text = f"{parameter.metavar} {getattr(parameter, 'help', None) or ''}"
    return bool(re.search(r"\bID\b", text)) and parameter.metavar != "RESOURCE"


def words_of(path: str) -> list[tuple[list[str], list[str]]]:
    """The command lines with which to test a command, and the kinds of objects that each names."""
    words, kinds = path.split(), []
    for one in COMMANDS[path].params:
        if one.param_type_name == "argument" and is_id(one):
            name = one.metavar.strip("[].")
            kind = KINDS.get(name) or GROUPS[path.split()[0]]
            kinds.append(kind)
            words.append(PREFIXES[kind])
    return [([*words, *MORE.get(path, "").split()], kinds)] if kinds else []


LINES = [
    pytest.param(words, kinds, id=path)
    for path in COMMANDS
    if path not in FOREIGN | OFFLINE
    for words, kinds in words_of(path)
]


def option_line(path: str, option: str, kind: str) -> tuple[list[str], list[str]]:
    """The command line with which to test an option, and the kinds of objects that it names."""
    chosen = [option, PREFIXES[kind]]
    if kind == "delivery":
        return [*path.split(), PREFIXES["subscription"], *chosen], ["subscription", kind]
    yes = [] if path == "hook list" else ["--yes"]
    return [*path.split(), *chosen, *MORE.get(path, "").split(), *yes], [kind]


STACK = {"id": IDS["stack"], "stack_name": "web", "stack_status": "CREATE_COMPLETE"}
DOCUMENTS: dict[str, Json] = {
    f"stacks/{IDS['stack']}": {"stack": STACK},
    f"stacks/web/{IDS['stack']}/snapshots": {"snapshots": [
        {"id": IDS["snapshot"], "name": "s", "creation_time": "2026-11-20T20:16:36Z"}]},
    f"stacks/web/{IDS['stack']}/snapshots/{IDS['snapshot']}": {"snapshot": {
        "id": IDS["snapshot"], "name": "s", "creation_time": "2026-11-20T20:16:36Z"}},
    f"stacks/web/{IDS['stack']}/breakpoints": {"breakpoints": [
        {"id": IDS["breakpoint"], "at": "a", "on": "pre-create"}]},
    f"stacks/web/{IDS['stack']}/resources": {"resources": []},
    f"hooks/{IDS['hook']}": {"id": IDS["hook"], "digest": "d"},
    f"subscriptions/{IDS['subscription']}": {
        "id": IDS["subscription"], "channel": "webhook", "target": "http://a.test"},
    "tokens": {"tokens": [{"id": IDS["token"], "name": "ci", "kind": "token"}]},
}  # fmt: skip


async def answer(request: web.Request) -> web.StreamResponse:
    """Objects by their whole IDs, and the IDs with a prefix; nothing else exists."""
    path = request.path.removeprefix("/v1/p/")
    if path == "ids":
        found = IDS[request.query["kind"]]
        matches = found.startswith(request.query["prefix"])
        ids = [{"kind": request.query["kind"], "id": found, "name": "n"}] if matches else []
        return web.json_response({"ids": ids})
    if request.method == "GET" and path in DOCUMENTS:
        return web.json_response(DOCUMENTS[path])
    error = {"type": "EntityNotFound", "message": "could not be found", "remedy": "Look."}
    return web.json_response({"error": error}, status=404)


async def last_request(words: list[str]) -> SentRequest:
    async with running_stub(answer) as stub:
        line = [*words, "--url", stub.url, "--project", "p"]
        done = await asyncio.to_thread(CliRunner().invoke, app, line)
        assert done.exit_code in (0, 1), done.output
        assert isinstance(done.exception, SystemExit | None), done.exception
        return stub.seen[-1]


def check(last: SentRequest, kinds: list[str]) -> None:
    """The last request has the whole ID of each object, and no beginning of one instead."""
    text = f"{last.path} {last.body.decode()}"
    for kind in kinds:
        assert IDS[kind] in text, text
        assert PREFIXES[kind] not in text.replace(IDS[kind], ""), text


@pytest.mark.parametrize(("words", "kinds"), LINES)
async def test_an_argument_is_the_beginning_of_an_id(words: list[str], kinds: list[str]) -> None:
    check(await last_request(words), kinds)


@pytest.mark.parametrize(
    ("words", "kinds"),
    [pytest.param(*option_line(*key, kind), id=" ".join(key)) for key, kind in OPTIONS.items()],
)
async def test_an_option_is_the_beginning_of_an_id(words: list[str], kinds: list[str]) -> None:
    check(await last_request(words), kinds)


def test_every_option_that_is_an_id_is_tested() -> None:
    found = {
        (path, one.opts[0])
        for path, command in COMMANDS.items()
        for one in command.params
        if one.param_type_name == "option" and is_id(one) and path not in FOREIGN
    }
    assert found == OPTIONS.keys()


def test_foreign_ids_are_those_of_other_services() -> None:
    for path, metavar in (FOREIGN | OFFLINE).items():
        assert metavar in [one.metavar for one in COMMANDS[path].params], path
