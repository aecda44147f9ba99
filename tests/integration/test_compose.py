"""deploy/compose: Compose knows the file, and Headgate starts with its settings."""

import asyncio
import json
import os
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import compose_spec
import pytest
import yaml

from hub.cli.commands.server_commands import ROLES
from hub.settings.settings import Settings, load_settings
from tests.support.forks import ForkedProcess, start_forked
from tests.support.ports import free_port
from tests.support.program import PATIENCE, eventually

Json = Any
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "compose"
TEXT = (FOLDER / "compose.yaml").read_text()
SETTINGS = "/etc/headgate/headgate.toml"
#: Compose reads them from .env.
VARIABLES = {"DATABASE_PASSWORD": "db-pw", "BROKER_PASSWORD": "mq-pw"}


def services() -> dict[str, Json]:
    """The services with the values of variables."""
    text = re.sub(r"\$\{(\w+):\?[^}]*\}", lambda found: VARIABLES[found[1]], TEXT)
    found: dict[str, Json] = yaml.safe_load(text)["services"]
    return found


def test_compose_knows_the_file() -> None:
    """It refuses unknown keys and values."""
    read = compose_spec.PyCompose.from_json(json.dumps(yaml.safe_load(TEXT)))
    read.validate()
    assert set(read.service_names()) == {*ROLES, "postgres", "rabbitmq"}


def test_files_and_volumes_exist() -> None:
    declared = yaml.safe_load(TEXT)["volumes"]
    for service in services().values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (FOLDER / source).is_file() if source.startswith(".") else source in declared
        if build := service.get("build"):
            assert (FOLDER / build["context"] / build["dockerfile"]).is_file()


@pytest.mark.parametrize("role", ROLES)
def test_headgate_accepts_the_settings(role: str) -> None:
    service = services()[role]
    assert service["command"] == ["serve", "--config", SETTINGS, "--role", role]
    assert f"./{Path(SETTINGS).name}:{SETTINGS}:ro" in service["volumes"]
    settings = load_settings(FOLDER / "headgate.toml", {}, environment=service["environment"])
    assert settings.auth.mode == "tokens"
    database, broker = settings.database.url, settings.channels.amqp.url[0]
    assert database.get_secret_value() == "postgresql://headgate:db-pw@postgres/headgate"
    assert broker.get_secret_value() == "amqp://headgate:mq-pw@rabbitmq:5672/"
    volumes = [one.split(":")[1] for one in service["volumes"]]
    for file in settings.key_files:
        assert any(file.is_relative_to(volume) for volume in volumes)
    check_health_url(role, service, settings)


def check_health_url(role: str, service: Json, settings: Settings) -> None:
    """The health check of the image asks the address at which the process answers."""
    address = settings.server.listen.replace("0.0.0.0", "127.0.0.1")
    if role == "api":
        assert service["ports"] == [f"{address}:{settings.server.port}"]
        assert "HEADGATE_HEALTH_URL" not in service["environment"]
    else:
        address = settings.metrics.address
        assert service["environment"]["HEADGATE_HEALTH_URL"] == f"http://{address}/healthz"


async def test_the_services_start_with_one_volume(database_url: str, tmp_path: Path) -> None:
    """Together, with one key that the first of them creates. Ports and paths are the test's."""
    text = (FOLDER / "headgate.toml").read_text()
    urls, processes = [], []
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        for role in ROLES:
            address = f"127.0.0.1:{free_port()}"
            urls.append(f"http://{address}/readyz")
            file = tmp_path / f"{role}.toml"
            local = text.replace("0.0.0.0:8004", address).replace("/var/lib", f"{tmp_path}/lib")
            file.write_text(local)
            service = services()[role]
            variables = service["environment"] | {"HEADGATE_DATABASE__URL": database_url}
            del variables["HEADGATE_CHANNELS__AMQP__URL"]
            if role != "api":
                variables["HEADGATE_METRICS__ADDRESS"] = address
            arguments = [str(file) if one == SETTINGS else one for one in service["command"]]
            log = stack.enter_context((tmp_path / f"{role}.log").open("wb"))
            descriptors = [0, log.fileno(), log.fileno()]
            process = start_forked(arguments, os.environ | variables, descriptors)
            stack.callback(stop, process, tmp_path / f"{role}.log")
            processes.append(process)

        async def ready() -> bool:
            return set(await asyncio.gather(*(status_of(session, url) for url in urls))) == {200}

        await eventually(ready)
    keys = sorted(one.name for one in (tmp_path / "lib" / "headgate").glob("*.key"))
    assert keys == ["audit.key", "credentials.key"]


async def status_of(session: aiohttp.ClientSession, url: str) -> int:
    """0: nothing listens."""
    try:
        async with session.get(url) as response:
            return response.status
    except aiohttp.ClientConnectionError:
        return 0


def stop(process: ForkedProcess, log: Path) -> None:
    process.terminate()
    assert process.wait(PATIENCE) == 0, log.read_text()
