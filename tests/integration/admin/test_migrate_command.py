"""headgate admin migrate shows and applies pending migrations."""

from engine.store.schema.upgrade import read_migrations
from tests.support.admin_command import run_admin
from tests.support.postgres import TestServer

ALL = [migration.name for migration in read_migrations()]


async def test_pending_migrations_are_shown_and_applied(postgres: TestServer) -> None:
    async with postgres.new_database(template="template1") as url:
        output = await run_admin("migrate", "--dry-run", "--json", url=url)
        assert output.document == {"pending": ALL, "routines": True, "applied": False}
        output = await run_admin("migrate", url=url)
        assert output.out.splitlines() == [
            *(f"{name}: applied" for name in ALL), "functions and views: upgraded",
        ]  # fmt: skip
        output = await run_admin("migrate", "--dry-run", url=url)
        assert output.out == "the schema is up to date\n"
