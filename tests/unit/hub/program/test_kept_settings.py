"""The settings that stay until a restart of the server, when SIGHUP reads the others again."""

from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from engine.errors import Invalid
from hub.program import server_processes
from hub.program.server_processes import keep_fixed
from hub.settings.settings import Settings, load_settings

OPEN_TO_ALL = {"server.listen": "0.0.0.0:8004", "auth.mode": "tokens"}
EMBEDDED_URL = "postgresql:///headgate?host=/run/headgate"
EXTERNAL_URL = "postgresql://headgate:old@db1,db2:6432/headgate?sslmode=require"
POOLER_URL = "postgresql://headgate:old@pooler/headgate"
EXTERNAL = {"database.url": EXTERNAL_URL}
POOLED = EXTERNAL | {"database.pooler_url": POOLER_URL}
OTHER_POOLER = {"database.pooler_url": "postgresql://b/b"}
CELLS = {"cells.databases": [{"name": "a", "url": "postgresql://a/headgate"}]}
OIDC = {
    "auth.mode": "tokens",
    "auth.oidc.issuer": "https://id.example.org",
    "auth.oidc.client_id": "headgate",
    "auth.oidc.grants": [{"group": "g", "roles": ["reader"]}],
}


def changed_url(former: str, new: str) -> dict[str, Any]:
    assert former in EXTERNAL_URL
    return {"database.url": EXTERNAL_URL.replace(former, new)}


def read(values: dict[str, Any]) -> Settings:
    return load_settings(None, values, environment={})


def reload(
    monkeypatch: pytest.MonkeyPatch, first: dict[str, Any], changed: dict[str, Any]
) -> tuple[Settings, list[str]]:
    """The settings of new processes, and those that need a restart. An embedded database has a URL
    in the settings of processes."""
    current = read(first)
    if not (current.cells.databases or current.database.url.get_secret_value()):
        current = server_processes._with_database(current, EMBEDDED_URL)
    with capture_logs() as logs:
        monkeypatch.setattr(server_processes, "log", structlog.get_logger())
        kept = keep_fixed(read(changed), read(first), current)
    return kept, [name for entry in logs for name in entry["settings"]]


@pytest.mark.parametrize(
    ("first", "changed", "place", "remedy"),
    [
        pytest.param(
            OPEN_TO_ALL,
            {"server.listen": "127.0.0.1:8004", "auth.mode": "none"},
            "[server] listen",
            "restart the server, which keeps [server] listen",
            id="no authentication",
        ),
        pytest.param(
            {"metrics.address": "0.0.0.0:9000", "metrics.needs": "nothing"},
            {"metrics.address": "127.0.0.1:9000"},
            "[metrics] address",
            "restart the server, which keeps [metrics] address",
            id="metrics without authentication",
        ),
        pytest.param(
            OPEN_TO_ALL | OIDC | {"server.public_url": "https://headgate.example.org"},
            {"server.listen": "127.0.0.1:8004"} | OIDC,
            "[server] public_url",
            "restart the server, which keeps [server] listen",
            id="no URL for browsers",
        ),
    ],
)
def test_settings_that_are_not_allowed_with_those_that_stay_are_invalid(
    monkeypatch: pytest.MonkeyPatch,
    first: dict[str, Any],
    changed: dict[str, Any],
    place: str,
    remedy: str,
) -> None:
    with pytest.raises(Invalid) as error:
        reload(monkeypatch, first, changed)
    (finding,) = error.value.findings
    assert finding.place == place
    assert remedy in finding.remedy


def test_settings_that_are_allowed_with_those_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {"server.listen": "127.0.0.1:1", "auth.mode": "tokens", "engine.workers": 7}
    kept, names = reload(monkeypatch, OPEN_TO_ALL, changed)
    assert names == ["[server] listen"]
    assert (kept.server.listen, kept.auth.mode, kept.engine.workers) == (
        "0.0.0.0:8004",
        "tokens",
        7,
    )


@pytest.mark.parametrize(
    ("first", "changed"),
    [
        pytest.param(EXTERNAL, {}, id="none"),
        pytest.param(EXTERNAL, changed_url("db1,db2:6432", "db3"), id="host"),
        pytest.param(EXTERNAL, changed_url("6432", "1"), id="port"),
        pytest.param(EXTERNAL, changed_url("/headgate?", "/b?"), id="name"),
        pytest.param(EXTERNAL, changed_url("//headgate:", "//b:"), id="user"),
        pytest.param(EXTERNAL, changed_url("?", "?host=b&"), id="host in the query"),
        pytest.param(EXTERNAL, POOLED, id="pooler"),
        pytest.param(POOLED, EXTERNAL, id="no pooler"),
        pytest.param(POOLED, POOLED | OTHER_POOLER, id="other pooler"),
        pytest.param(EXTERNAL, EXTERNAL | {"database.data_dir": "b"}, id="folder of the keys"),
        pytest.param(CELLS, CELLS | {"database.data_dir": "b"}, id="folder of the keys of cells"),
        pytest.param({}, EXTERNAL, id="external"),
        pytest.param({}, {"database.data_dir": "b"}, id="folder of the embedded database"),
    ],
)  # fmt: skip
def test_the_database_stays_until_a_restart(
    monkeypatch: pytest.MonkeyPatch, first: dict[str, Any], changed: dict[str, Any]
) -> None:
    kept, names = reload(monkeypatch, first, changed | {"database.pool": 9})
    assert names == ["[database]"]
    expected = read(first).database
    if not first:
        expected = server_processes._with_database(read(first), EMBEDDED_URL).database
    assert kept.database == expected


@pytest.mark.parametrize(
    "changed",
    [
        POOLED | changed_url(":old", ":new"),
        POOLED | changed_url("?", "?password=new&"),
        POOLED | {"database.pooler_url": POOLER_URL.replace(":old", ":new")},
        POOLED | {"database.pool": 9},
        POOLED | {"database.read_url": "postgresql://replica/headgate"},
    ],
    ids=["password", "password in the query", "password of the pooler", "pool", "replicas"],
)
def test_other_settings_of_an_external_database_change(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    kept, names = reload(monkeypatch, POOLED, changed)
    assert names == []
    assert kept.database == read(changed).database


def cell(name: str) -> dict[str, Any]:
    url = f"postgresql://headgate:old@{name}/headgate"
    return {"name": name, "url": url, "projects": [name]}


A, B = map(cell, "ab")
POOLED_A = A | {"pooler_url": POOLER_URL}


@pytest.mark.parametrize(
    ("first", "changed"),
    [
        pytest.param([A, B], [A, B | {"url": A["url"].replace("@a", "@c")}], id="host"),
        pytest.param([A, B], [B | {"name": "a"}, A | {"name": "b"}], id="exchanged"),
        pytest.param([A], [POOLED_A], id="pooler"),
        pytest.param([POOLED_A], [A], id="no pooler"),
    ],
)  # fmt: skip
def test_a_cell_keeps_its_database_until_a_restart(
    monkeypatch: pytest.MonkeyPatch, first: list[Any], changed: list[Any]
) -> None:
    former = {"cells.databases": first}
    new = {"cells.databases": changed, "cells.revision": 2, "engine.workers": 7}
    kept, names = reload(monkeypatch, former, new)
    assert names == ["[cells]"]
    assert (kept.cells, kept.engine.workers) == (read(former).cells, 7)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param([A, B], id="a new cell"),
        pytest.param([B], id="another cell"),
        pytest.param([A | {"url": A["url"].replace("old", "new")}], id="password"),
        pytest.param([A | {"projects": ["c"], "new_projects": False}], id="projects"),
        pytest.param([A | {"read_url": "postgresql://replica/headgate"}], id="replicas"),
    ],
)  # fmt: skip
def test_other_settings_of_cells_change(
    monkeypatch: pytest.MonkeyPatch, changed: list[Any]
) -> None:
    new = {"cells.databases": changed, "cells.revision": 2}
    kept, names = reload(monkeypatch, {"cells.databases": [A]}, new)
    assert names == []
    assert kept.cells == read(new).cells


@pytest.mark.parametrize(("first", "changed"), [(CELLS, EXTERNAL), (EXTERNAL, CELLS)])
def test_a_server_keeps_its_cells_or_its_database(
    monkeypatch: pytest.MonkeyPatch, first: dict[str, Any], changed: dict[str, Any]
) -> None:
    kept, names = reload(monkeypatch, first, changed)
    assert names == ["[database]", "[cells]"]
    assert (kept.cells, kept.database) == (read(first).cells, read(first).database)
