"""Finds objects of a project by the beginning of their ID: one range of an index each."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from engine.store.connection import Connection

#: Characters that a prefix has at least. A range without a bound would read the whole table.
MIN_PREFIX = 4
#: More matches are not read.
MAX_MATCHES = 10
#: Also deleted stacks, which an ID names, too.
STACKS_WITH_PREFIX = """
select s.id, s.name from stack s
 where s.id between $2 and $3 and s.project = $1
 order by s.id limit $4
"""
HOOKS_WITH_PREFIX = """
select h.id, concat_ws(':', coalesce(r.name, s.name), nullif(h.path, ''), h.point) as name
  from (select * from hook where id between $2 and $3 and project = $1 order by id limit $4) h
  join stack s on s.id = h.stack_id
  left join stack r on r.id = s.root_id
 order by h.id
"""
SUBSCRIPTIONS_WITH_PREFIX = """
select id, concat_ws(' ', channel, nullif(name, '')) as name from subscription
 where id between $2 and $3 and project = $1
 order by id limit $4
"""
DELIVERIES_WITH_PREFIX = """
select id, type as name from delivery
 where id between $2 and $3 and project = $1
 order by id limit $4
"""
STATEMENTS: Mapping[str, str] = {
    "stack": STACKS_WITH_PREFIX,
    "hook": HOOKS_WITH_PREFIX,
    "subscription": SUBSCRIPTIONS_WITH_PREFIX,
    "delivery": DELIVERIES_WITH_PREFIX,
}
_DIGITS = re.compile(r"[0-9a-f-]+")


@dataclass(frozen=True, slots=True)
class IdMatch:
    """name: of a stack; of a hook, its place: ``web:db:pre-create``; the channel of a subscription;
    the type of the event of a delivery."""

    id: UUID
    name: str


def range_of_ids(prefix: str) -> tuple[UUID, UUID] | None:
    """The first and the last ID with this prefix, in small or capital letters; None: an ID cannot
    begin like this, or the prefix is too short. Pure."""
    text = prefix.lower()
    digits = text.replace("-", "")
    if not _DIGITS.fullmatch(text) or not MIN_PREFIX <= len(digits) <= 32:
        return None
    first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    return (first, last) if str(first).startswith(text) else None


async def read_ids_with_prefix(
    conn: Connection, project: str, kind: str, ids: tuple[UUID, UUID]
) -> list[IdMatch]:
    """kind: of `STATEMENTS`. ids: the first and the last one."""
    rows = await conn.fetch(STATEMENTS[kind], project, *ids, MAX_MATCHES)
    return [IdMatch(row["id"], row["name"]) for row in rows]
