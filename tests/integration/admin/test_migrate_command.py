"""headgate admin migrate: what is pending is shown, and applied."""

from engine.store.schema_upgrade import shipped
from tests.support.admin import admin
from tests.support.postgres import TestServer

ALL = [migration.name for migration in shipped()]


async def test_it_shows_what_is_pending_and_applies_it(postgres: TestServer) -> None:
    async with postgres.new_database(template="template1") as url:
        said = await admin("migrate", "--dry-run", "--json", url=url)
        assert said.document == {"pending": ALL, "routines": True, "applied": False}
        said = await admin("migrate", url=url)
        assert said.out.splitlines() == [
            *(f"{name}: applied" for name in ALL), "functions and views: upgraded",
        ]  # fmt: skip
        said = await admin("migrate", "--dry-run", url=url)
        assert said.out == "the schema is up to date\n"
