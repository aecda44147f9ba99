"""Stacks by a part of their name."""

import pytest

from engine.missing_objects import no_stack
from engine.store.database import Database
from engine.store.stacks.stack_search import (
    MAX_CANDIDATES,
    MAX_LENGTH,
    MAX_NEIGHBOURS,
    read_neighbours,
    read_similar,
    similar_names,
)
from tests.integration.nested.test_lifecycle import FILES, nested
from tests.support.changes import until_deleted
from tests.support.program import Program, resource

LIST = "GET .../stacks lists the stacks of the project."
SHOP = 'Did you mean "shop"?'


async def remedy(run: Program, name: str) -> str:
    """Of the error that a stack with this name does not exist. Its sentence is Heat's."""
    status, document = await run.call("GET", f"/stacks/{name}")
    error = document["error"]
    assert (status, error["type"]) == (404, "EntityNotFound")
    assert error["message"] == f"The Stack ({name}) could not be found."
    return str(error["remedy"])


async def remedies(run: Program) -> set[str]:
    """For names before and after "shop"."""
    return {await remedy(run, name) for name in ("shho", "shpo")}


@pytest.mark.parametrize(
    ("name", "expected"), [("shpo", SHOP), ("shops", SHOP), ("hop", SHOP), ("xyz", LIST)]
)
async def test_a_mistyped_name_is_answered_with_the_nearest_one(
    in_own_project: Program, name: str, expected: str
) -> None:
    for one in ("shop", "database"):
        await in_own_project.create(one, {"a": resource()})
    assert await remedy(in_own_project, name) == expected
    status, document = await in_own_project.call("GET", f"/hooks?stack={name}")
    assert (status, document["error"]["remedy"]) == (404, expected)


async def test_only_names_of_stacks_that_the_caller_sees_are_suggested(
    in_own_project: Program,
) -> None:
    run = in_own_project
    await run.create("shop", {"a": resource()})
    await run.until_ended("shop")
    await run.create("outer", {"web": nested()}, files=FILES)
    await run.until_ended("outer")
    child = (await run.resources("outer"))["web"]["physical_resource_id"]
    name = (await run.stack(child))["stack_name"]
    assert await remedy(run, f"{name}x") == LIST  # a nested stack
    await run.stack_request("DELETE", "shop")
    await until_deleted(run, "shop")
    assert await remedies(run) == {LIST}
    own = run.project
    run.project = f"{own}-other"
    await run.create("shop", {"a": resource()})
    assert await remedies(run) == {SHOP}
    run.project = own
    assert await remedies(run) == {LIST}


async def test_names_are_read_up_to_a_limit(database: Database) -> None:
    insert = """
    insert into stack (id, project, name, owner, version, traversal)
    select gen_random_uuid(), 'p', 'n' || to_char(n, 'FM00000'), 'o', 1, 1
      from generate_series(1, 1000) n
    """
    async with database.connection() as conn:
        await conn.execute(insert)
        near = await read_neighbours(conn, "p", "n00500x")
    assert near == [f"n{one:05}" for one in range(501 - MAX_NEIGHBOURS, 501 + MAX_NEIGHBOURS)]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("xhop-00500", "shop-00500"),
        ("hop-00500", "shop-00500"),
        ("sshop-00500", "shop-00500"),
        ("hsop-00500", "shop-00500"),
        ("Shop_00500", "shop-00500"),
        ("SHOP-00500", "shop-00500"),
        ("shop-005000", "shop-00500"),
    ],
)
async def test_a_mistyped_name_is_found_among_many(
    database: Database, name: str, meant: str
) -> None:
    insert = """
    insert into stack (id, project, name, owner, version, traversal)
    select gen_random_uuid(), 'p', word || to_char(n, 'FM00000'), 'o', 1, 1
      from generate_series(1, 1000) n, unnest(array['shop-', 'h', 's', 'x', 'S']) word
    """
    async with database.connection() as conn:
        await conn.execute(insert)
        near = await read_similar(conn, "p", name)
        assert await read_similar(conn, "q", name) == []
    assert no_stack(name, near).finding.remedy == f'Did you mean "{meant}"?'


def test_the_number_of_names_that_are_looked_up_is_limited() -> None:
    assert 4_000 < len(similar_names("name" * 32)) <= MAX_CANDIDATES
    assert len(similar_names("production-web-frontend-1")) < MAX_CANDIDATES
    assert similar_names("x" * (MAX_LENGTH + 1)) == []
    assert "" not in similar_names("ab")


def test_a_wrong_character_at_any_place_of_a_usual_name_is_found() -> None:
    name = "production-web-frontend-" + "a" * 40
    assert len(name) == 64
    found = {*similar_names(name)}
    for at in range(len(name)):
        wrong = f"{name[:at]}7{name[at + 1 :]}", f"{name[:at]}7{name[at:]}"
        assert found.issuperset(wrong), at
