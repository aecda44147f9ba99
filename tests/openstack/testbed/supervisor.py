"""Starts a test bed, keeps it until a signal, and ends all its processes."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.openstack.testbed.configuration import POOLS, object_servers, write_configuration
from tests.openstack.testbed.layout import ENVIRONMENT, IDENTITY, OPTIONAL, REGION, Layout
from tests.openstack.testbed.processes import (
    PYTHON,
    Processes,
    TestBedError,
    console_command,
    rings_command,
    web_command,
)
from tests.openstack.testbed.seed import seed_cloud, seed_identity
from tests.support.rabbit import Rabbit

#: Schemas that are created at the same time.
PARALLEL = max(2, os.cpu_count() or 1)
# Longest first.
DATABASES: Mapping[str, tuple[str, ...]] = {
    "keystone": ("keystone",),
    "neutron": ("neutron",),
    "nova": ("nova_api", "nova_cell0", "nova_cell1"),
    "cinder": ("cinder",),
    "glance": ("glance",),
    "placement": ("placement",),
    "heat": ("heat",),
    "octavia": ("octavia",),
    "barbican": ("barbican",),
    "designate": ("designate",),
    "magnum": ("magnum",),
    "manila": ("manila",),
    "mistral": ("mistral",),
    "aodh": ("aodh",),
    "gnocchi": ("gnocchi",),
    "trove": ("trove",),
    "zaqar": ("zaqar",),
    "swift": (),
}
#: Services that look for their configuration in the home directory.
AT_HOME = frozenset({"aodh", "barbican", "gnocchi", "zaqar"})
#: Messages in each queue of notifications.
KEPT_NOTIFICATIONS = 1_000
#: Seconds that MariaDB has to end in order.
STOP_PATIENCE = 60.0
COUNT_WORKERS = """
select (select count(*) from nova_cell1.services where deleted = 0 and last_seen_up >= '{since}')
     + (select count(*) from cinder.services where deleted = 0 and updated_at >= '{since}')
"""
COUNT_HEAT_WORKERS = """
select count(*) from heat.service
 where deleted_at is null and greatest(created_at, coalesce(updated_at, created_at)) >= '{since}'
"""
COUNT_CENTRALS = """
select count(*) from designate.service_statuses
 where service_name = 'central' and heartbeated_at >= '{since}'
"""
COUNT_SHARE_WORKERS = """
select count(*) from manila.services
 where deleted = 'False' and greatest(created_at, coalesce(updated_at, created_at)) >= '{since}'
"""
COUNT_HOSTS = "select count(*) from nova_api.host_mappings"
#: Nova keeps the URL of the broker, whose port changes.
UPDATE_CELLS = "update nova_api.cell_mappings set transport_url = '{broker}' where name = 'cell1'"


class Supervisor:
    """One start of a test bed."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.processes = Processes(layout)
        self.rabbit = Rabbit(layout.folder("rabbit"))
        self._has_broker = False
        self._broker = self.rabbit.url.replace("amqp:", "rabbit:")
        self._started = time.monotonic()
        self._since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        self._parallel = asyncio.Semaphore(PARALLEL)

    def report(self, text: str) -> None:
        print(f"{time.monotonic() - self._started:5.0f} s  {text}", flush=True)

    async def start(self) -> None:
        """Start all services and fill a new cloud. Raises TestBedError."""
        check_programs()
        for service in OPTIONAL:
            self.layout.started(service).unlink(missing_ok=True)
        write_configuration(self.layout, self._broker)
        self._start_broker()
        await self.processes.start(
            "memcached",
            ["memcached", *as_root("-u", "root"), "-l", "127.0.0.1", "-U", "0", "-m", "64",
             "-p", str(self.layout.ports["memcached"])],
        )  # fmt: skip
        await self._start_database()
        self.report("the database runs")
        async with asyncio.TaskGroup() as tasks:
            identity = tasks.create_task(self._start_keystone())
            before = [identity]
            if self.layout.needs_broker:
                before.append(tasks.create_task(self.rabbit.ready()))
            for service in DATABASES:
                if service in self.layout.services and service != IDENTITY:
                    tasks.create_task(self._start_service(service, *before))
        self.report("all services run")
        if self.layout.is_complete:
            await self._until_workers_report()
            await asyncio.to_thread(seed_cloud, self.layout)
        for service in self.layout.optional:
            self.layout.started(service).touch()
        self._write_clouds()
        if self.layout.is_complete:
            await asyncio.to_thread(limit_queues, self.rabbit)
        self.layout.ready.write_text(f"{os.getpid()}\n")
        self.report(f"ready: {self.layout.clouds}")

    async def start_wanted(self) -> None:
        """Start the optional services that are asked for. Raises TestBedError."""
        before = self.layout.optional
        wanted = [name for name in OPTIONAL if self.layout.wanted(name).exists()]
        self.layout = self.layout.with_optional(wanted)
        if not (added := [name for name in self.layout.optional if name not in before]):
            return
        self.layout.save()
        write_configuration(self.layout, self._broker)
        await asyncio.to_thread(seed_identity, self.layout)
        if self._start_broker():
            await self.rabbit.ready()
        async with asyncio.TaskGroup() as tasks:
            for service in added:
                tasks.create_task(self._start_service(service))
        if self.layout.is_complete:
            await self._until_workers_report()
        for service in added:
            self.layout.started(service).touch()
            self.report(f"{service} runs")

    def _start_broker(self) -> bool:
        """Start RabbitMQ if a service needs it. False: nothing needs it, or it runs."""
        if self._has_broker or not self.layout.needs_broker:
            return False
        self.rabbit.start()
        self.rabbit.end_with_this_process()
        self.layout.broker.write_text(self.rabbit.url)
        self._has_broker = True
        return True

    async def _start_database(self) -> None:
        layout = self.layout
        data = layout.directory / "mariadb"
        user = as_root("--user=root")
        if not (data / "mysql").exists():
            await self.processes.run(
                "mariadb", "mariadb-install-db", "--no-defaults", *user, f"--datadir={data}",
                "--skip-test-db", "--auth-root-authentication-method=normal",
            )  # fmt: skip
        await self.processes.start(
            "mariadb",
            [program("mariadbd"), "--no-defaults", *user, f"--datadir={data}",
             f"--socket={layout.socket}", "--skip-networking", "--max-connections=2000",
             "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=256M",
             "--skip-log-bin", f"--pid-file={layout.directory / 'mariadb.pid'}"],
        )  # fmt: skip
        async with asyncio.timeout(STOP_PATIENCE):
            while not await self._query("select 1"):
                self.processes.check("mariadb")
                await asyncio.sleep(0.1)

    async def query(self, statement: str) -> str:
        """The output of a statement, without headings. Raises TestBedError."""
        return await self.processes.run(
            "query", "mariadb", "--no-defaults", "-S", str(self.layout.socket), "-u", "root", "-N",
            "-e", statement,
        )  # fmt: skip

    async def _query(self, statement: str) -> str:
        """The output, or an empty string if the statement fails."""
        try:
            return await self.query(statement)
        except TestBedError:
            return ""

    async def _start_keystone(self) -> None:
        await self._create_schemas("keystone")
        await self._start_api("keystone", "keystone.wsgi.api", processes=2)
        await self._until_answers("keystone")
        await asyncio.to_thread(seed_identity, self.layout)
        self.report("Keystone runs")

    async def _start_service(self, service: str, *before: asyncio.Task[None]) -> None:
        """before: what must have ended before its processes start."""
        await self._create_schemas(service)
        for task in before:
            await task
        if service == "nova":
            await self.query(UPDATE_CELLS.format(broker=self._broker))
        if service == "swift":
            await self.processes.run("swift-rings", *rings_command(self.layout))
        for name, module, processes in APIS.get(service, ()):
            await self._start_api(name, module, processes=processes)
        for name, command in self._workers(service).items():
            await self.processes.start(name, command, self._home(service))
        if service == "designate":
            await self._define_pool()
        if service == "manila":  # the scheduler and the only back end
            await self._until_count(COUNT_SHARE_WORKERS.format(since=self._since), 2)
        for name in OPTIONAL.get(service, (service,)):
            await self._until_answers(name)

    async def _define_pool(self) -> None:
        """Tell Designate which name servers it has, once it has reported."""
        await self._until_count(COUNT_CENTRALS.format(since=self._since), 1)
        config = f"--config-file={self.layout.configuration('designate')}"
        pools = str(self.layout.folder("designate") / POOLS)
        await self.processes.run(
            "designate-pool", "designate-manage", config, "pool", "update", "--file", pools
        )
        # It waits for the answer to its first message, which is lost before the others listen.
        await self.processes.start(
            "designate-producer", console_command("designate-producer", config)
        )

    async def _create_schemas(self, service: str) -> None:
        """Create the schemas once; remove first what an interrupted start has left."""
        stamp = self.layout.folder("schemas") / service
        if stamp.exists():
            return
        config = f"--config-file={self.layout.configuration(service)}"
        async with self._parallel:
            for database in DATABASES[service]:
                await self.query(
                    f"drop database if exists {database};"
                    f"create database {database} character set utf8mb3"
                )
            for number, command in enumerate(self._schema_commands(service, config)):
                await self.processes.run(
                    f"{service}-schema-{number}", *command, environment=self._home(service)
                )
        stamp.touch()

    def _schema_commands(self, service: str, config: str) -> list[list[str]]:
        layout = self.layout
        commands = {
            "keystone": [
                ["keystone-manage", config, "db_sync"],
                ["keystone-manage", config, "bootstrap", "--bootstrap-password", layout.password,
                 "--bootstrap-region-id", REGION,
                 *(f"--bootstrap-{kind}-url={layout.auth_url}" for kind in ("public", "internal"))],
            ],
            "placement": [["placement-manage", config, "db", "sync"]],
            "glance": [["glance-manage", config, "db_sync"]],
            "nova": [
                ["nova-manage", config, "api_db", "sync"],
                ["nova-manage", config, "cell_v2", "map_cell0", "--database_connection",
                 layout.database("nova_cell0")],
                ["nova-manage", config, "db", "sync"],
                ["nova-manage", config, "cell_v2", "create_cell", "--name", "cell1"],
            ],
            "neutron": [["neutron-db-manage", config, "upgrade", "heads"]],
            "cinder": [["cinder-manage", config, "db", "sync"]],
            "heat": [["heat-manage", config, "db_sync"]],
            "octavia": [["octavia-db-manage", config, "upgrade", "head"]],
            "barbican": [["barbican-manage", "db", "upgrade"]],
            "designate": [["designate-manage", config, "database", "sync"]],
            "magnum": [["magnum-db-manage", config, "upgrade"]],
            "manila": [["manila-manage", config, "db", "sync"]],
            "mistral": [
                ["mistral-db-manage", config, "upgrade", "head"],
                ["mistral-db-manage", config, "populate"],
            ],
            "aodh": [["aodh-dbsync", config]],
            "gnocchi": [["gnocchi-upgrade"]],
            "trove": [["trove-manage", config, "db_sync"]],
            "zaqar": [["zaqar-sql-db-manage", config, "upgrade", "head"]],
        }  # fmt: skip
        return commands.get(service, [])

    async def _start_api(self, name: str, module: str, *, processes: int) -> None:
        service = name.removesuffix("-cfn")
        directory, config = str(self.layout.directory / service), self.layout.configuration(service)
        upper = service.upper()
        # Each service has its own way to name the configuration of its application.
        environment = {
            **self._home(service),
            f"{upper}_CONFIG_FILE": str(config),
            f"OS_{upper}_CONFIG_DIR": directory,
            f"OS_{upper}_CONFIG_FILES": {
                "keystone": str(config),
                "nova": f"{ENVIRONMENT}/etc/nova/api-paste.ini;{config}",
            }.get(service, config.name),
        }
        reads_arguments = service in ("cinder", "heat", "magnum", "manila", "octavia", "trove")
        arguments = ["--config-file", str(config)] if reads_arguments else []
        port, requests = self.layout.ports[name], self.layout.requests(name)
        command = web_command(port, module, processes, requests, arguments)
        await self.processes.start(name, command, environment)

    def _home(self, service: str) -> dict[str, str]:
        """The environment of a service that looks for its configuration in the home directory."""
        return {"HOME": str(self.layout.folder(service))} if service in AT_HOME else {}

    def _workers(self, service: str) -> dict[str, list[str]]:
        config = f"--config-file={self.layout.configuration(service)}"
        if service == "nova":
            computes = {
                f"nova-{host}": console_command(
                    "nova-compute", f"--config-file={self.layout.directory}/nova/{host}.conf"
                )
                for host in (f"compute{number + 1}" for number in range(self.layout.computes))
            }
            others = ("nova-conductor", "nova-scheduler")
            return computes | {name: console_command(name, config) for name in others}
        if service == "swift":
            return {
                name: console_command(f"swift-{path.stem}", str(path), "--verbose")
                for name, path in object_servers(self.layout).items()
            }
        if service == "barbican":
            return {"barbican-worker": console_command("barbican-worker")}
        if service == "mistral":
            # Its other servers use a whole processor, even when they have nothing to do.
            servers = ("--server", "engine,executor", config)
            return {"mistral-engine": console_command("mistral-server", *servers)}
        if service == "trove":
            agents = [PYTHON, "-m", "headgate_testbed.guest_agents", config]
            return {
                "trove-guests": agents,
                "trove-conductor": console_command("trove-conductor", config),
                "trove-taskmanager": console_command("trove-taskmanager", config),
            }
        names = {
            "cinder": ("cinder-scheduler", "cinder-volume", "cinder-backup"),
            "heat": ("heat-engine",),
            "octavia": ("octavia-worker",),
            "aodh": ("aodh-evaluator", "aodh-listener", "aodh-notifier"),
            "gnocchi": ("gnocchi-metricd",),
            "magnum": ("magnum-conductor",),
            "manila": ("manila-scheduler", "manila-share"),
            "designate": tuple(f"designate-{name}" for name in DNS_WORKERS),
        }
        return {name: console_command(name, config) for name in names.get(service, ())}

    async def _until_answers(self, name: str) -> None:
        """Wait until the API has loaded its application."""
        url = self.layout.url(name)

        def answers() -> bool:
            try:
                urllib.request.urlopen(url, timeout=30).close()
            except urllib.error.HTTPError as error:
                return error.code < 500
            except OSError:
                return False
            return True

        await self.processes.until(name, answers)

    async def _until_workers_report(self) -> None:
        """Wait until all workers have reported since this start: requests before are lost."""
        expected = 2 + self.layout.computes + 4  # cinder-volume reports once per back end
        await self._until_count(COUNT_WORKERS.format(since=self._since), expected)
        if "heat" in self.layout.optional:
            await self._until_count(COUNT_HEAT_WORKERS.format(since=self._since), 1)
        await self._until_count(COUNT_HOSTS, self.layout.computes)
        self.report("all workers have reported")

    async def _until_count(self, statement: str, expected: int) -> None:
        async with asyncio.timeout(STOP_PATIENCE * 3):
            while int(await self.query(statement)) < expected:
                for name in os.listdir(self.layout.folder("pids")):
                    self.processes.check(name)
                await asyncio.sleep(0.3)

    def _write_clouds(self) -> None:
        clouds = {
            f"testbed-{user}": {
                "region_name": REGION,
                "auth": {
                    "auth_url": self.layout.auth_url,
                    "username": user,
                    "password": self.layout.password,
                    "project_name": user,
                    "user_domain_name": "Default",
                    "project_domain_name": "Default",
                },
            }
            for user in ("admin", "demo")
        }
        self.layout.clouds.write_text(yaml.safe_dump({"clouds": clouds}, sort_keys=False))

    async def stop(self, *, keep_data: bool) -> None:
        """End all processes. keep_data: give MariaDB time to write it."""
        self.layout.ready.unlink(missing_ok=True)
        if keep_data:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_PATIENCE):
                    await self.processes.stop("mariadb", signal.SIGTERM)
        self.rabbit.stop_port_mapper()
        self.processes.kill_all()


DNS_WORKERS = ("central", "mdns", "worker")
# Name, module of the application, and processes of each API. Nova and Neutron call each other.
APIS: Mapping[str, tuple[tuple[str, str, int], ...]] = {
    "placement": (("placement", "placement.wsgi.api", 1),),
    "glance": (("glance", "glance.wsgi.api", 1),),
    "nova": (("nova", "nova.wsgi.osapi_compute", 2),),
    "neutron": (("neutron", "headgate_testbed.neutron_application", 2),),
    "cinder": (("cinder", "cinder.wsgi.api", 1),),
    "heat": (("heat", "heat.wsgi.api", 2), ("heat-cfn", "heat.wsgi.cfn", 1)),
    "octavia": (("octavia", "octavia.wsgi.api", 1),),
    "designate": (("designate", "designate.wsgi.api", 1),),
    "magnum": (("magnum", "magnum.wsgi.api", 1),),
    "manila": (("manila", "manila.wsgi.api", 1),),
    "mistral": (("mistral", "mistral.wsgi", 1),),
    "aodh": (("aodh", "aodh.wsgi.api", 1),),
    "gnocchi": (("gnocchi", "gnocchi.rest.wsgi", 1),),
    "trove": (("trove", "trove.cmd.app_wsgi", 1),),
    "zaqar": (("zaqar", "zaqar.transport.wsgi.app", 1),),
    "barbican": (("barbican", "headgate_testbed.key_manager_application", 1),),
}


def limit_queues(rabbit: Rabbit) -> None:
    """Keep the newest notifications only: services declare queues for them that nothing reads."""
    policy = {
        "pattern": r"^(versioned_)?notifications\.",
        "definition": {"max-length": KEPT_NOTIFICATIONS},
        "apply-to": "queues",
    }
    request = urllib.request.Request(
        f"{rabbit.management_url}/api/policies/%2F/notifications",
        json.dumps(policy).encode(),
        {
            "Authorization": f"Basic {b64encode(b'guest:guest').decode()}",
            "Content-Type": "application/json",
        },
        method="PUT",
    )
    urllib.request.urlopen(request, timeout=30).close()


def as_root(*arguments: str) -> tuple[str, ...]:
    """Arguments that a server needs if root starts it."""
    return arguments if os.getuid() == 0 else ()


def program(name: str) -> str:
    """The path of a program, also of administrators. Raises TestBedError."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise TestBedError(f"{name} is not installed: `make test-openstack` says how")
    return found


def check_programs() -> None:
    """Raises TestBedError if something is not installed."""
    for name in ("mariadbd", "mariadb-install-db", "mariadb", "memcached", "qemu-img", "setpriv"):
        program(name)
    if not Path(PYTHON).exists():
        raise TestBedError(f"{ENVIRONMENT} does not exist: `make test-openstack` creates it")


async def supervise(layout: Layout, *, keep_data: bool) -> None:
    """Run the test bed until SIGTERM or SIGINT. SIGUSR1 starts the optional services that are
    asked for. Raises TestBedError.

    keep_data: the directory is used again.
    """
    ended, asked = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    supervisor = Supervisor(layout)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, asked.set)

    async def run() -> None:
        await supervisor.start()
        while True:
            await asked.wait()
            asked.clear()
            await supervisor.start_wanted()

    running, waiting = asyncio.create_task(run()), asyncio.create_task(ended.wait())
    try:
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        running.cancel()
        waiting.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        await supervisor.stop(keep_data=keep_data)
