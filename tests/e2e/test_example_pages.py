"""The commands of pages that start servers and programs of their own, executed as written.

Each section of a page has its own copy of the examples, with free ports in place of those of the
page. A server or program that the page starts in a terminal of its own runs until the section ends.
"""

import asyncio
import json
import re
import shlex
import shutil
import socket
import subprocess
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import TypeAlias

import pytest

from engine.store.embedded.binaries import find_binaries
from tests.e2e.test_guides import DOCS, template
from tests.support.forks import ForkedProcess, start_forked
from tests.support.http_things import Things, serve_things, thing
from tests.support.page_commands import ROOT, Command, File, commands
from tests.support.page_reader import Reader
from tests.support.ports import free_port
from tests.support.postgres import copy_cluster, open_directory
from tests.support.program import PATIENCE, intervals
from tests.support.rabbit import Rabbit

#: Of the server, and of the programs of the examples.
PORT = re.compile(r"\b(?:8004|808[01]|900[0-9]|9999)\b")
SERVE = "headgate serve"
#: In a terminal of its own.
PROGRAM = re.compile(r"(?:SECRET=\S+ *)?(?:python (?:-m )?|haproxy -f )(examples/\S+|http\.server)")
#: Of a program with a port as an option, of HAProxy, and of Python's HTTP server.
LISTENS = re.compile(
    r'"--port", type=int, default=(\d+)|bind 127\.0\.0\.1:(\d+)|http\.server (\d+)'
)
WEBHOOK = re.compile(r"--webhook \S+?:(\d+)")
BLOCK_OF_SETTINGS = re.compile(r"^```toml\n(.*?)^```", re.M | re.S)
INDENTED_SETTINGS = re.compile(r"^ *```toml\n(.*?)^ *```", re.M | re.S)
REJECTED = "# rejected"
#: The exit code of a command whose change has failed.
FAILED = 3

GUARD = "how-to/guard-every-stack.md"
POLICIES = "../examples/policies/README.md"
LISTENERS = "../examples/listeners/README.md"
RESIZE = "../examples/resize/README.md"

#: The ID of the hook that waits.
HOOK = (
    "$(headgate hook list --json |"
    " python -c 'import json, sys; print(json.load(sys.stdin)[0][\"id\"])')"
)
OWNER_TAG = (
    "headgate serve --config examples/policies/owner_tag.toml",
    "SECRET=whsec_b3duZXJzLW93bmVycy1vd25lcnM= python examples/policies/owner_tag.py"
    " --types OS::Heat::None --tag metadata.owner",
)
#: Outside of the change window: these days include neither today nor tomorrow in any time zone.
OTHER_DAYS = "wed-thu" if time.gmtime().tm_wday in (5, 6, 0) else "sat-sun"
UNTIL_WAITING = "headgate hook list -o name | grep ."
#: Stop the programs, but not the server.
STOP = "stop programs"
FIRST = "headgate stack create first -t examples/first-stack.yaml -e examples/first-env.yaml"
CHECK = File("check.sh", "#!/bin/sh\ngrep -q pre-create && echo checked\n")


@dataclass(frozen=True)
class Section:
    """The introduction of a page, and the section whose heading begins with `title`, if any.

    before, after: what the reader does before, and after, the command that begins so. names,
    left_out: see `Guide`.
    """

    page: str
    title: str
    before: Mapping[str, Sequence[str | File]] = field(default_factory=dict)
    after: Mapping[str, Sequence[str | File]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        introduction, *sections = re.split(r"^## ", (DOCS / self.page).read_text(), flags=re.M)
        if not self.title:
            return introduction
        (found,) = (one for one in sections if one.startswith(self.title))
        return f"{introduction}\n## {found}"


SECTIONS = (
    Section(GUARD, "Test a rule", before={
        "headgate hook list": [
            *OWNER_TAG,
            "headgate stack create first -t examples/policies/owner_tag.yaml -P owner=bob --wait",
        ],
    }, names={
        "STACK": "first",
        "NAME/ID": "first/$(headgate stack show first --json |"
        " python -c 'import json, sys; print(json.load(sys.stdin)[\"id\"])')",
    }),
    Section(GUARD, "Verify", before={"headgate stack create": OWNER_TAG}),
    Section(GUARD, "Allow changes only in a change window", before={
        "SECRET=": ["headgate serve --config examples/policies/change_window.toml"],
    }, after={"SECRET=": [
        "headgate stack create first -t examples/first-stack.yaml --wait",
        "headgate stack update first -t examples/first-stack.yaml -P length=30",
        "until headgate stack decisions first | grep 'the change window opens'; do sleep 0.1; done",
    ]}, names={
        "--days mon-fri": f"--days {OTHER_DAYS}", "whsec_...": "whsec_d2luZG93LXdpbmRvdy13aW5kb3ctd2lu",
    }),
    Section(POLICIES, "owner_tag.py"),
    Section(POLICIES, "licenses.py", before={
        "headgate stack update two": [
            "until curl -s http://127.0.0.1:9002/ | grep '\"taken\": 0'; do sleep 0.1; done",
        ],
    }),
    Section(POLICIES, "drain.py", after={
        "headgate stack update site": ["headgate hook list --stack site --state answered -o name | grep -c . | grep 2"],
    }),
    Section(POLICIES, "change_window.py", before={
        "headgate why": [UNTIL_WAITING],
    }, after={"curl": ["headgate watch first"]}, names={
        "--days mon-fri": f"--days {OTHER_DAYS}", "HOOK": HOOK,
    }),
    Section(RESIZE, "", names={
        "pip install": "pip install -q --disable-pip-version-check --target plugins",
    }),
    Section(LISTENERS, "inbox.sh", before={
        "examples/listeners/inbox.sh": [FIRST, UNTIL_WAITING],
    }, after={"examples/listeners/inbox.sh 6f1c...": ["headgate watch first"]}, names={
        "6f1c...": HOOK,
    }),
)  # fmt: skip


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


DRIFT_PAGE, IMPORT_PAGE = "how-to/repair-drift.md", "how-to/import-existing-resources.md"
HTTP_PAGE = "how-to/manage-anything-over-http.md"
SERVE_HTTP = (
    File("headgate.toml", '[resource_types.http]\nenabled = true\nallow = ["127.0.0.0/8"]\n'),
    "headgate serve --config headgate.toml",
)
DRIFTING = {
    "heat_template_version": "2018-08-31",
    "resources": dict.fromkeys(("queue", "db_a"), thing(Things("THINGS"))),
}
OBSERVE = "headgate stack observe web --wait"
#: The page's policy that holds drift, for everyone.
HOLD = "convergence:\n  observe: {every: 10m}\n  on_drift: hold\n"


def id_of(resource: str) -> str:
    """The physical ID of a resource of the stack `web`."""
    path = f"headgate resource show web {resource} --json"
    return f"$({path} | python -c 'import json, sys; print(json.load(sys.stdin)[\"physical_resource_id\"])')"


def drift(resource: str, size: int) -> str:
    """Another program changes the object."""
    return (
        "curl --fail-with-body -X PUT -H 'Content-Type: application/json'"
        f" -d '{{\"size\": {size}}}' THINGS/things/{id_of(resource)}"
    )


THINGS_SECTIONS = (
    Section(DRIFT_PAGE, "Find drift", before={OBSERVE: [
        *SERVE_HTTP,
        File("web.json", json.dumps(DRIFTING)),
        "headgate stack create web -t web.json --wait",
        drift("queue", 5),
    ]}),
    Section(DRIFT_PAGE, "Observe at intervals", before={
        "headgate token create": [
            *SERVE_HTTP,
            File("web.json", json.dumps(DRIFTING)),
            File("hold.yaml", HOLD),
            "headgate stack create web -t web.json -e hold.yaml --wait",
        ],
        "headgate hook show": [drift("queue", 5), OBSERVE],
        "headgate hook adopt": [
            "until headgate stack show web --json | grep UPDATE_COMPLETE; do sleep 0.1; done",
            drift("queue", 6), OBSERVE,
        ],
    }, left_out=("openstack", "headgate observation-credential"), names={
        "web-7f3a": id_of("queue"),
    }),
    Section(DRIFT_PAGE, "Repair drift", before={
        "headgate stack converge web --dry-run": [
            *SERVE_HTTP,
            File("web.json", json.dumps(DRIFTING)),
            "headgate stack create web -t web.json --wait",
            drift("db_a", 5), OBSERVE,
        ],
        "headgate stack converge web --only 'db*' --plan": [
            drift("db_a", 6), OBSERVE, "headgate stack converge web --only 'db*' --dry-run",
        ],
        "headgate stack converge web --rounds": [drift("queue", 7)],
    }, names={
        "DIGEST": "0" * 64, "converge web --wait": "converge web --yes --wait",
        "--rounds 3": "--rounds 3 --yes",
    }),
    Section(IMPORT_PAGE, "Import an object", before={"headgate stack from-resources": [
        *SERVE_HTTP,
        File("site.yaml", blocks(IMPORT_PAGE, "yaml")[0]),
        "curl --fail-with-body -H 'Content-Type: application/json' -d '{\"size\": 1}' THINGS/things",
    ]}, names={
        "/sites": "/things", "17=site.yaml": "t1=site.yaml --yes", "17": "t1",
    }),
)  # fmt: skip


ACCESS_PAGE, KEYS_PAGE = "how-to/set-up-access.md", "how-to/rotate-keys.md"
ETC = "/etc/headgate/"
SERVE_ETC = f"headgate serve --config {ETC}headgate.toml"
PASSWORD = "a good password"


PRODUCTION = "how-to/run-in-production.md"
#: The account and the folder of the settings are the reader's own.
ACCOUNT = {
    "-o headgate": '-o "$(id -un)"', "-g headgate": '-g "$(id -gn)"', "/etc/headgate": "etc",
}  # fmt: skip
#: Of a server that sends messages to Slack and e-mails.
MESSAGES = """
[channels.webhook]
allow = ["127.0.0.0/8"]
[channels.email]
host = "127.0.0.1"
port = 9001
encryption = "none"
sender = "headgate@example.org"
recipients = ["*@example.org"]
"""


def settings_file(text: str) -> File:
    return File("headgate.toml", text)


def first_settings(page: str) -> File:
    """The first settings of a page, in its file."""
    found = INDENTED_SETTINGS.search((DOCS / page).read_text())
    assert found
    return settings_file(textwrap.dedent(found[1]))


#: A template with a value that is stored encrypted.
SECRET_TEMPLATE = template(
    "web.yaml", "a", more="parameters: {word: {type: string, hidden: true}}\n"
)
#: The embedded database of the reader's server.
EMBEDDED = "postgresql:///headgate?host=$PWD/headgate-data/postgres&user=headgate"
#: Damages each encrypted parameter. For a shell, within double quotes.
DAMAGE = (
    "update template set parameters = regexp_replace(parameters::text,"
    " '(sealed:[^ ]*: .{9})....', '\\1AAAA')::jsonb where parameters::text like '%sealed:%'"
)
CREDENTIALS = '[credentials]\nkey_file = "/etc/headgate/credentials.key"\n'
#: The keys of the server are in the reader's own folder, and the database beside it.
SETTINGS_SECTIONS = (
    Section(ACCESS_PAGE, "Use tokens of this server", before={
        "export HEADGATE_TOKEN": [first_settings(ACCESS_PAGE), SERVE_ETC],
    }, after={
        "headgate token revoke": [
            "headgate token list --project web | grep ann",
            "! headgate token list --project web | grep ci",
        ],
        "export OS_AUTH_TYPE=admin_token": ["openstack stack list"],
        # The reader has chosen the other one of the two.
        "export OS_AUTH_TYPE=http_basic": ["env -u OS_TOKEN openstack stack list"],
    }, names={
        ETC: "",
        "headgate token create ann": f"echo '{PASSWORD}' | headgate token create ann",
        "revoke ID": (
            "revoke --yes $(headgate token list --project web"
            " -o jsonpath='$[?@.name == \"ci\"].id' | head -1)"
        ),
        "https://headgate.example.org": "http://127.0.0.1:8004",
        "hgt_...": "$HEADGATE_TOKEN",
        "OS_PASSWORD=...": f"OS_PASSWORD='{PASSWORD}'",
    }),
    Section(ACCESS_PAGE, "Verify", before={
        "headgate token whoami": [
            first_settings(ACCESS_PAGE),
            SERVE_ETC,
            "export HEADGATE_TOKEN=$(headgate admin create-token root --role admin --everywhere"
            f" --config {ETC}headgate.toml)",
        ],
    }, names={
        ETC: "",
        "https://headgate.example.org": "http://127.0.0.1:8004",
        "# without a token: 401": "| grep ' 401 '",
    }),
    Section(KEYS_PAGE, "Rotate the encryption key", before={
        "umask 077": [
            f"umask 077; head -c 32 /dev/urandom > {ETC}credentials.key",
            settings_file(CREDENTIALS),
            SERVE_ETC,
            FIRST,
            UNTIL_WAITING,
        ],
        "headgate admin rotate-encryption-key": [
            settings_file(
                f'{CREDENTIALS}fallback_key_files = ["/etc/headgate/credentials.key.new"]\n'
            ),
            SERVE_ETC,
            first_settings(KEYS_PAGE),
            SERVE_ETC,
        ],
    }, after={
        # The rest of the change needs the secret, which is encrypted with the new key alone.
        "headgate admin rotate-encryption-key": [
            f"headgate admin doctor --config {ETC}headgate.toml | grep '^key  *ok'",
            settings_file(CREDENTIALS.replace("credentials.key", "credentials.key.new")),
            f"rm {ETC}credentials.key",
            SERVE_ETC,
            "headgate hook continue first:app",
            "headgate watch first",
        ],
    }, names={ETC: ""}),
    Section(KEYS_PAGE, "A value cannot be decrypted", before={
        "headgate stack abandon": [
            settings_file(""),
            SERVE_ETC,
            SECRET_TEMPLATE,
            "headgate stack create web -t web.yaml -P word=beta --wait",
            f'psql "{EMBEDDED}" -c "{DAMAGE}"',
        ],
    }, after={"headgate stack abandon": ["grep undecryptable web.json"]}, names={ETC: ""}),
    Section(KEYS_PAGE, "Rotate the token key", before={
        "headgate admin rotate-token-key --keep-for": [settings_file(""), SERVE_ETC],
    }, names={ETC: ""}),
    Section("how-to/harden.md", "Verify", before={
        "headgate admin doctor": [first_settings(ACCESS_PAGE), SERVE_ETC],
    }, left_out=("systemd-analyze",), names={
        ETC: "",
        "https://headgate.example.org": "http://127.0.0.1:8004",
        "# 401": "| grep ' 401 '",
    }),
    Section("how-to/run-at-scale.md", "Upgrade one process at a time", before={
        "headgate admin upgrade-check": [settings_file(""), SERVE_ETC],
    }, left_out=("systemctl",), names={ETC: ""}),
    Section(PRODUCTION, "Install", before={
        # From a clone of the repository.
        "cp deploy/systemd": ['ln -s "$REPOSITORY/deploy" .; mkdir units'],
        "install -m 0600": ['ln -s "$REPOSITORY/config.example.toml" .'],
    }, left_out=("getent", "python3 -m venv", "/opt/headgate"), names={
        **ACCOUNT, "/etc/systemd/system/": "units/",
    }),
    Section(PRODUCTION, "Configure", before={"head -c 32": ["mkdir etc"]}, names=ACCOUNT),
    Section(PRODUCTION, "Start", before={"headgate admin migrate": [
        "mkdir etc", File("etc/headgate.toml", ""), "headgate serve --config etc/headgate.toml",
    ]}, left_out=("systemctl", "chown root"), names=ACCOUNT),
    Section("how-to/run-on-kubernetes.md", "Install", left_out=("podman", "kubectl", "helm")),
    Section("how-to/trace-a-change.md", "Send spans", after={
        "pip install": ["ls -d plugins/opentelemetry/exporter"],
    }, names={
        "pip install": "pip install -q --disable-pip-version-check --target plugins",
        "requirements/": f"{ROOT}/requirements/",
    }),
    Section("how-to/README.md", "Recipes", before={
        "headgate subscription create": [
            File("headgate.toml", MESSAGES), "headgate serve --config headgate.toml",
            template("web.yaml", "a"),
        ],
        "headgate stack history": [
            "headgate watch web",
            *(step for number in (2, 3) for step in (
                template("web.yaml", "a", properties=f"value: {number}"),
                "headgate stack update web -t web.yaml --wait",
            )),
        ],
    }, names={
        "https://hooks.slack.com/": "http://127.0.0.1:9000/", "web:NAME": "web:a",
    }),
    Section("how-to/use-openstack-clients.md", "Use the command line", before={
        "export OS_AUTH_TYPE=http_basic": [
            first_settings(ACCESS_PAGE),
            SERVE_ETC,
            "export HEADGATE_TOKEN=$(headgate admin create-token root --role admin --everywhere"
            f" --config {ETC}headgate.toml)",
            f"echo '{PASSWORD}' | headgate token create ann --project default --role author --password",
        ],
        "openstack stack create": [template("stack.yaml", "a")],
    }, after={
        "export OS_AUTH_TYPE=http_basic": ["openstack stack list", "unset OS_USERNAME OS_PASSWORD"],
    }, names={
        ETC: "",
        "https://headgate.example.org": "http://127.0.0.1:8004",
        "hgt_...": "$HEADGATE_TOKEN",
        "OS_PASSWORD=...": f"OS_PASSWORD='{PASSWORD}'",
    }),
    Section("how-to/use-openstack-clients.md", "Verify", before={
        "openstack stack list": [
            "headgate serve", "export OS_AUTH_TYPE=none OS_ENDPOINT=http://127.0.0.1:8004/v1/default",
        ],
    }),
)  # fmt: skip


#: Also those that tests below execute with a broker.
ALL_SECTIONS = (
    *SECTIONS, *SETTINGS_SECTIONS, *THINGS_SECTIONS, Section(HTTP_PAGE, "Verify"), Section(LISTENERS, "listener.py"),
)  # fmt: skip


Running: TypeAlias = subprocess.Popen[bytes] | ForkedProcess


class Terminals:
    """The reader's terminals: one for commands, and one for each server or program."""

    def __init__(self, folder: Path, stack: ExitStack, names: Mapping[str, str]) -> None:
        self._folder, self._stack = folder, stack
        self._ports: dict[str, str] = {}
        self._running: dict[str, Running] = {}
        shutil.copytree(ROOT / "examples", folder / "examples")
        for file in (folder / "examples").rglob("*.*"):
            if file.suffix in {".py", ".toml", ".sh", ".cfg"}:
                file.write_text(self.own_ports(file.read_text()))
        port = self.own_ports("8004")
        self._url = f"http://127.0.0.1:{port}"
        self._reader = Reader(self._url, "default", names)
        # As if it were installed where `pip install` installs.
        self._plugins = folder / "plugins"
        more = {
            # Not written into commands, where parts of the path could be placeholders.
            "REPOSITORY": str(ROOT),
            "HEADGATE_SERVER__LISTEN": f"127.0.0.1:{port}",
            "PYTHONPATH": str(self._plugins),
            "PATH": f"{self._reader.environment['PATH']}:{find_binaries(None)}:/usr/sbin",
        }
        self._reader.environment |= more

    def own_ports(self, text: str) -> str:
        return PORT.sub(lambda found: self._port(found[0]), text)

    def _port(self, port: str) -> str:
        if port not in self._ports:
            self._ports[port] = str(free_port())
        return self._ports[port]

    def take_step(self, step: str | File | Command) -> None:
        if isinstance(step, File):
            file = self._folder / step.name
            file.write_text(self.own_ports(self._reader.fill_in(step.content)))
            file.chmod(0o755)
            return
        if step == STOP:
            for name in [name for name in self._running if name != SERVE]:
                stop(self._running.pop(name))
            return
        command = step if isinstance(step, Command) else Command(step)
        text = self.own_ports(self._reader.fill_in(command.text))
        if text.startswith(SERVE):
            copy_cluster(self._folder / "headgate-data")
            self._start(SERVE, text, lambda _: self._serves())
        elif program := PROGRAM.match(text):
            self._start(program[1], text, lambda log: self._listens(program[1], text, log))
        else:
            code = FAILED if REJECTED in text else command.code
            self._reader.enter(Command(text, command.shown, code))

    def _start(self, name: str, text: str, is_ready: Callable[[str], bool]) -> None:
        """Run it until the end, or until it is started in another way."""
        if (former := self._running.pop(name, None)) is not None:
            stop(former)
        log = self._stack.enter_context((self._folder / f"{len(self._running)}.log").open("w+b"))
        running = self._running[name] = self._launch(text.partition(" #")[0], log.fileno())
        self._stack.callback(stop, running)
        end, pauses = time.monotonic() + PATIENCE, intervals()
        logged = ""
        while not is_ready(logged):
            assert running.poll() is None and time.monotonic() < end, (text, logged)
            time.sleep(next(pauses))
            logged = Path(log.name).read_text()

    def _launch(self, text: str, log: int) -> Running:
        # A forked process has the plug-ins of the process that it is forked from.
        if text.startswith(SERVE) and not self._plugins.exists():
            return start_forked(shlex.split(text)[1:], self._reader.environment, [0, log, log])
        return subprocess.Popen(
            ["bash", "-c", text], cwd=self._folder, stdout=log, stderr=log,
            env=self._reader.environment, start_new_session=True,
        )  # fmt: skip

    def _serves(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/readyz", timeout=PATIENCE):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False

    def _listens(self, script: str, text: str, logged: str) -> bool:
        """At its port; or, as it logs, to a queue or a stream."""
        of_program = self._folder / script
        source = of_program.read_text() if of_program.exists() else ""
        found = WEBHOOK.search(text) or LISTENS.search(source) or LISTENS.search(text)
        if found is None:
            return "listening to" in logged
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(found[found.lastindex or 1]))) == 0


def stop(process: Running) -> None:
    if process.poll() is None:
        process.terminate()
    process.wait(PATIENCE)


@contextmanager
def open_terminals(
    monkeypatch: pytest.MonkeyPatch, names: Mapping[str, str]
) -> Iterator[Terminals]:
    with open_directory() as folder, ExitStack() as stack:
        monkeypatch.chdir(folder)
        yield Terminals(folder, stack, names)


def follow(section: Section, terminals: Terminals) -> None:
    before, after = dict(section.before), dict(section.after)
    executed = 0
    for one in commands(section.text):
        if isinstance(one, Command) and one.text.startswith(("export PATH", *section.left_out)):
            continue
        for start in [start for start in before if begins(one, start)]:
            for step in before.pop(start):
                terminals.take_step(step)
        terminals.take_step(one)
        for start in [start for start in after if begins(one, start)]:
            for step in after.pop(start):
                terminals.take_step(step)
        executed += 1
    assert executed
    assert not before and not after, "no command of the page begins so"


def begins(one: Command | File, start: str) -> bool:
    return isinstance(one, Command) and one.text.startswith(start)


@pytest.mark.parametrize(
    "section",
    (*SECTIONS, *SETTINGS_SECTIONS),
    ids=lambda one: f"{Path(one.page).parts[-2]}-{one.title or 'page'}",
)
def test_each_command_works_as_the_page_says(
    section: Section, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_terminals(monkeypatch, section.names) as terminals:
        if section.page == LISTENERS:
            terminals.take_step(settings_of_listeners())
        follow(section, terminals)


@contextmanager
def run_things() -> Iterator[Things]:
    """A service with objects, in a thread of its own."""
    started, ended = Queue[Things](), threading.Event()

    async def serve() -> None:
        async with serve_things() as things:
            started.put(things)
            await asyncio.to_thread(ended.wait)

    with ThreadPoolExecutor(1) as threads:
        serving = threads.submit(asyncio.run, serve())
        try:
            yield started.get(timeout=PATIENCE)
        finally:
            ended.set()
            serving.result(PATIENCE)


@pytest.mark.parametrize("section", THINGS_SECTIONS, ids=lambda one: one.title or "page")
def test_each_command_works_with_an_http_service(
    section: Section, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_things() as things:
        names = {"THINGS": things.url, "https://sites.example.org": things.url, **section.names}
        with open_terminals(monkeypatch, names) as terminals:
            follow(section, terminals)


async def test_the_queue_of_the_page_is_created_in_rabbitmq(
    rabbit: Rabbit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings and the template of the page, with the broker of the test."""
    section = Section(HTTP_PAGE, "Verify", names={
        "https://rabbit.example.org:15671": rabbit.management_url,
        "/etc/headgate/rabbit.secret": "rabbit.secret",
        '"headgate"': '"guest"', '["demo"]': '["default"]', '["10.20.0.0/16"]': '["127.0.0.0/8"]',
        "STACK": "queues",
    }, before={"headgate stack show": [
        File("rabbit.secret", "guest"),
        File("headgate.toml", blocks(HTTP_PAGE, "toml")[0]),
        File("queues.yaml", blocks(HTTP_PAGE, "yaml")[0]),
        "headgate serve --config headgate.toml",
        "headgate stack create queues -t queues.yaml --wait",
    ]})  # fmt: skip
    with open_terminals(monkeypatch, section.names) as terminals:
        follow(section, terminals)
        terminals.take_step("headgate stack delete queues --yes --wait")


def settings_of_listeners(more: str = "") -> File:
    found = BLOCK_OF_SETTINGS.search((DOCS / LISTENERS).read_text())
    assert found
    return File("headgate.toml", f"{found[1]}{more}")


async def test_a_listener_answers_over_each_channel(
    rabbit: Rabbit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other: each answers the hook of a new stack. The last one also answers a hook
    that waited before."""
    listeners = ("SECRET=", "python examples/listeners/listener.py --amqp",
                 "python examples/listeners/listener.py --stream")  # fmt: skip
    names = ("web", "amqp", "stream")
    after = {
        start: [FIRST.replace("first ", f"{name} ", 1), f"headgate watch {name}"]
        for start, name in zip(listeners, names, strict=True)
    }
    before = {listeners[2]: [STOP, FIRST]}
    after[listeners[2]].append("headgate watch first")
    section = Section(LISTENERS, "listener.py", before, after, names={
        "amqp://guest:guest@127.0.0.1/": rabbit.url,
    })  # fmt: skip
    with open_terminals(monkeypatch, section.names) as terminals:
        amqp = f'[channels.amqp]\nurl = "{rabbit.url}"\n'
        for step in (settings_of_listeners(amqp), CHECK):
            terminals.take_step(step)
        follow(section, terminals)
