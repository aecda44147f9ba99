"""The region of a stack, which its environment names and its nested stacks share.

Only a stack without resources can change it: Headgate would look for existing objects in the new
region, find none, and create them a second time.
"""

from uuid import UUID

from engine.errors import Finding, Invalid
from engine.hot.environment.context_section import CONTEXT, REGION_NAME, REGION_PLACE
from engine.service.requests.blueprint import Blueprint
from engine.store.connection import Connection
from engine.store.stacks import stack_rows
from engine.store.stacks.stack_locks import LockedStack


async def change_region(
    conn: Connection, locked: LockedStack, wanted: str, configured: str
) -> None:
    """Store the region that an update of a root stack wants. configured: of stacks that name none.

    Raises Invalid if the stack has resources in another one.
    """
    if wanted == locked.region:
        return
    await check_region(conn, locked.id, locked.region, wanted, configured)
    await stack_rows.store_region(conn, locked.id, wanted)


async def change_region_back(
    conn: Connection, stack_id: UUID, current: str, blueprint: Blueprint, configured: str
) -> None:
    """Before a rollback: store the region of its blueprint, unless the failed change has created
    resources in another one. They are deleted there first; `store_region_of_version` stores the
    region when the rollback ends. current: of the stack.

    Raises Invalid if there are such resources, and the blueprint has resources too.
    """
    wanted = blueprint.region
    if wanted == current:
        return
    if blueprint.definition.resources:
        await check_region(conn, stack_id, current, wanted, configured)
    elif not is_same_region(current, wanted, configured) and await stack_rows.has_resources(
        conn, stack_id
    ):
        return
    await stack_rows.store_region(conn, stack_id, wanted)


async def check_region(
    conn: Connection, stack_id: UUID, current: str, wanted: str, configured: str
) -> None:
    """Raises Invalid if the stack has resources in another region. current: of the stack."""
    if is_same_region(current, wanted, configured):
        return
    if await stack_rows.has_resources(conn, stack_id):
        raise Invalid([_refusal(current, wanted, configured)])


def is_same_region(one: str, other: str, configured: str) -> bool:
    return (one or configured) == (other or configured)


def _refusal(current: str, wanted: str, configured: str) -> Finding:
    here, there = shown_region(current, configured), shown_region(wanted, configured)
    keep = (
        f"Write {CONTEXT}: {{{REGION_NAME}: {current}}} in the environment"
        if current
        else f"Leave out {REGION_PLACE}"
    )
    return Finding(
        REGION_PLACE,
        f"The stack has resources in {here}, so its region cannot become {there}.",
        f"{keep}, and create another stack for {there}.",
    )


def shown_region(region: str, configured: str) -> str:
    """A region in messages."""
    known = region or configured
    return f"the region {known}" if known else "the first region of the service catalog"
