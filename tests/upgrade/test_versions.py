"""Processes of two versions work side by side, and those too far apart do not start.

`make test-upgrade` runs these tests; `make test` does not, because they start many programs.
`FROM=v1.2.0` names the previous release.
"""

import asyncio
import os
from pathlib import Path

import pytest

from engine.store.schema.upgrade import read_migrations
from tests.support.postgres import TestServer
from tests.support.programs import ADDITIONS, build_next_program, extract_program
from tests.upgrade.rolling_upgrade import replace_all_under_load, rolling_upgrade

#: A revision of this repository.
PREVIOUS = os.environ.get("HEADGATE_PREVIOUS", "")
CONTRACT = """-- contract: 9998_next.sql
alter table stack drop column next_text;
"""


@pytest.mark.timeout(900)
async def test_the_processes_of_the_previous_release_are_replaced(
    postgres: TestServer, tmp_path: Path
) -> None:
    assert PREVIOUS, "name the previous release: make test-upgrade FROM=v1.2.0"
    previous = extract_program(tmp_path / "previous", PREVIOUS)
    async with (
        postgres.new_database(template="template0") as url,
        rolling_upgrade(url, previous, None) as upgrade,
    ):
        newest = max(one.name for one in (previous / "engine/store/migrations").glob("*.sql"))
        other_schema = newest != read_migrations()[-1].name
        await replace_all_under_load(upgrade, other_schema=other_schema)


@pytest.mark.timeout(900)
async def test_the_processes_of_this_version_are_replaced(
    postgres: TestServer, tmp_path: Path
) -> None:
    """The next version has more in its schema, and other texts of routines."""
    new = build_next_program(tmp_path / "new", "99.1.0", {"9998_next.sql": ADDITIONS})
    async with (
        postgres.new_database() as url,
        rolling_upgrade(url, None, new) as upgrade,
    ):
        await replace_all_under_load(upgrade, other_schema=True)


async def test_versions_that_are_too_far_apart_do_not_start_side_by_side(
    postgres: TestServer, tmp_path: Path
) -> None:
    sql = {"9998_next.sql": ADDITIONS, "9999_contract.sql": CONTRACT}
    later = build_next_program(tmp_path / "later", "99.2.0", sql)
    async with (
        postgres.new_database() as url,
        rolling_upgrade(url, None, later) as upgrade,
    ):
        old = await upgrade.start("old", "engine")
        refused = await asyncio.to_thread(upgrade.process("new", "engine").refuse)
        assert "headgate 99.2.0 runs only beside programs that know it" in refused
        await upgrade.check_versions(1)
        await asyncio.to_thread(old.stop)
        await upgrade.start("new", "engine")
        refused = await asyncio.to_thread(old.refuse)
        assert "headgate 99.2.0 has upgraded the database" in refused
        assert "Start headgate 99.2.0, or another one that knows this migration" in refused
        await upgrade.check_versions(1)
