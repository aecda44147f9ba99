"""A change goes on at somebody's word, in all the stacks that it goes through."""

from collections.abc import Sequence

from engine.hooks.course import Course
from engine.store.connection import Connection
from engine.store.hooks import Held, lock_hooks, set_paces, waiting_of
from engine.store.kin import Kin, within


async def take_course(conn: Connection, course: Course, kin: Sequence[Kin]) -> list[Held]:
    """Set the paces of the traversals; return the hooks that are let go. kin: locked."""
    await set_paces(
        conn,
        [
            (one.id, one.traversal, course.at(one.level)[one.pace])
            for one in kin
            if one.under_way and one.pace in course.at(one.level)
        ],
    )
    there = [(one.id, one.traversal) for one in within(kin) if one.under_way]
    waiting = await waiting_of(conn, there)
    held = await lock_hooks(conn, waiting) if waiting else []
    return [one for one in held if course.lets_go(one.asked.rule)]
