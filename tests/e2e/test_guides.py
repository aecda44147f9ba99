"""The commands of the tutorial and of the guides for stacks, executed as written, on one server.

`Guide.before` is what a page leaves to its reader: files, and commands that bring a stack to the state
that the page assumes. A command that a page shows with its output prints that output.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.page_commands import ROOT, Command, File, commands
from tests.support.page_reader import Reader
from tests.support.program import ServerProcess

DOCS = ROOT / "docs"
#: The server and the environment are the test's own.
SET_UP = ("make setup", ".venv/bin/headgate serve", "headgate serve", "export PATH", "echo $?")


@dataclass(frozen=True)
class Guide:
    """before: what comes before the command that begins so. left_out: beginnings of commands that
    only show a form. names: placeholders of the page, and what the reader writes for them."""

    page: str
    before: Mapping[str, Sequence[str | File]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


def template(name: str, *resources: str, properties: str = "value: a", more: str = "") -> File:
    """A file with a template of test resources."""
    lines = [
        f"  {one}: {{type: OS::Heat::TestResource, properties: {{{properties}}}}}\n"
        for one in resources
    ]
    return File(name, f"heat_template_version: 2018-08-31\nresources:\n{''.join(lines)}{more}")


#: What stands for the receiver of the notifications, and for the settings file of the server.
RECEIVER, SETTINGS = "RECEIVER", "SETTINGS"
#: The members that a hook proposes.
PROPOSED = "$(headgate hook show crew:workers -o jsonpath='$.resource.seen.{}')"
#: The command that signals the other policy.
FEWER = (
    """curl -X POST "$(headgate stack show crew -o jsonpath='$.outputs[?@.output_key == "fewer"""
)
#: The history of a hook that was answered.
HISTORY = "history $(headgate hook list --state answered -o name | head -1)"
GUIDES = (
    Guide("tutorial/first-stack.md"),
    Guide(
        "how-to/answer-a-hook.md",
        before={
            "headgate hook list": [
                "headgate stack create first -t examples/first-stack.yaml -e examples/first-env.yaml"
            ],
            "headgate hook reject": [
                "headgate watch first",
                "headgate stack update first --existing -P length=30 --break-at app:pre-update",
            ],
            "curl -X POST": [
                "headgate stack create later -t examples/first-stack.yaml -e examples/first-env.yaml",
                "until test -s token; do sleep 0.1; done",
                "export SIGNAL_URL=$(cat signal_url) TOKEN=$(cat token)",
            ],
            "headgate hook list --state all": ["headgate watch later"],
        },
        names={
            "STACK:RESOURCE": "first:app",
            "STACK": "first",
            "history ID": HISTORY,
            "http://127.0.0.1:9000/hook": RECEIVER,
        },
    ),
    Guide(
        "how-to/change-a-stack-safely.md",
        before={
            "headgate stack update web -t web.yaml --only": [
                "headgate hook continue first:app",
                template("web.yaml", "server", "db_a", "db", "cache"),
                "headgate stack create web -t web.yaml --wait",
                template("web.yaml", "server", "db_a", "db", "cache", properties="value: b"),
            ],
            "headgate stack update web -t web.yaml --moved": [
                template("web.yaml", "frontend", "db_a", "db", "cache", properties="value: b")
            ],
            "headgate stack update other": [
                template("other.yaml", "x"),
                "headgate stack create other -t other.yaml --wait",
                template("other.yaml", "x", "cache", properties="value: b"),
            ],
            "headgate stack update web -t web.yaml --break-at": [
                template("web.yaml", "frontend", "db_a", "db", properties="value: c")
            ],
        },
    ),
    Guide(
        "how-to/undo.md",
        before={
            "headgate stack update web -t web.yaml --rollback": [
                template("web.yaml", "a"),
                "headgate stack create web -t web.yaml --wait",
                template("web.yaml", "a", properties="value: b"),
                "headgate stack update web -t web.yaml --wait",
                "headgate stack update web -t web.yaml --wait",
                template("web.yaml", "a", properties="fail: true"),
            ],
            "headgate stack update web -t web.yaml --wait": [
                template("web.yaml", "a", "b"),
            ],
        },
    ),
    Guide(
        "how-to/move-a-stack.md",
        before={
            "headgate stack abandon": [
                template("web.yaml", "a"),
                "headgate stack create web -t web.yaml --wait",
            ]
        },
    ),
    Guide(
        "how-to/migrate-from-heat.md",
        before={
            "headgate template validate": [
                template("web.yaml", "a"),
                File("env.yaml", "resource_registry: {}\n"),
            ]
        },
        left_out=("openstack stack abandon", "headgate stack adopt"),
    ),
    Guide(
        "how-to/step-through-a-stack.md",
        before={
            "headgate stack update first": [
                "headgate hook run first:app",
                "headgate watch first",
                File("patch.yaml", "hooks: [{at: app, on: pre-update, patch: [value]}]"),
            ],
            "headgate hook progress": ["headgate hook step first:secret"],
            "headgate stack breakpoints add shop": [
                template("web.yaml", "db"),
                template("shop.yaml", more="  web: {type: web.yaml}\n"),
                "headgate stack create shop -t shop.yaml --wait",
            ],
        },
        names={"history ID": HISTORY, "/etc/headgate/headgate.toml": SETTINGS},
    ),
    Guide(
        "how-to/scale-a-group.md",
        before={
            "openstack stack resource signal": [
                "headgate stack create crew -t examples/group/group.yaml --wait"
            ],
            "headgate hook list": [
                "headgate stack update crew -t examples/group/group.yaml -e examples/group/ask.yaml"
                " -P greeting=hi"
            ],
            "headgate hook continue crew:workers --data 'victims": [
                "headgate hook continue crew:workers",
                "headgate watch crew",
                "openstack stack resource signal crew fewer",
            ],
        },
        names={
            f"'{name}={example}'": f'"{name}={PROPOSED.format(name)}"'
            for name, example in {"members": "[a, b]", "victims": "[c]"}.items()
        },
    ),
    Guide(
        "how-to/deploy-software.md",
        before={
            # The script has already run.
            "openstack software deployment list": [
                "headgate stack update web -t examples/deployments/deploy.yaml -P greeting=hi",
                "export DEPLOYMENT=$(openstack software deployment list -f value -c id)",
            ]
        },
        names={" ID": " $DEPLOYMENT", "/ID": "/$DEPLOYMENT"},
    ),
    Guide("how-to/check-templates.md"),
    Guide(
        "../examples/group/README.md",
        before={
            FEWER: ["headgate hook continue crew:workers", "headgate watch crew"],
        },
    ),
    Guide("how-to/wait-for-a-signal.md", left_out=("curl",)),
    Guide("how-to/write-a-listener.md"),
)


@contextmanager
def storing_receiver(folder: Path) -> Iterator[str]:
    """The URL of a receiver that writes how to answer a hook into files: `signal_url`, `token`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            notification = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            for name in ("signal_url", "token"):
                if value := notification["data"].get(name):
                    (folder / name).write_text(value)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as receiver:
        thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{receiver.server_port}/"
        finally:
            receiver.shutdown()
            thread.join()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What a test opens and does not close itself."""
    with ExitStack() as opened:
        yield opened


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: Path(guide.page).stem)
def test_each_command_works_as_the_page_says(
    guide: Guide,
    server: ServerProcess,
    stack: ExitStack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    receiver = stack.enter_context(storing_receiver(tmp_path))
    names = {
        placeholder: {RECEIVER: receiver, SETTINGS: str(server.config)}.get(name, name)
        for placeholder, name in guide.names.items()
    }
    reader = Reader(server.url, f"guide-{GUIDES.index(guide)}", names)
    before = dict(guide.before)
    executed = 0
    for one in commands((DOCS / guide.page).read_text()):
        if isinstance(one, File):
            (tmp_path / one.name).write_text(one.content)
            continue
        if one.text.startswith((*SET_UP, *guide.left_out)):
            continue
        for beginning in [begin for begin in before if one.text.startswith(begin)]:
            for step in before.pop(beginning):
                if isinstance(step, File):
                    (tmp_path / step.name).write_text(step.content)
                else:
                    reader.execute(Command(step))
        reader.execute(one)
        executed += 1
    assert executed
    assert not before, "no command of the page begins so"
