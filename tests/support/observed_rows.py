"""Records which rows each statement of a server reads or writes: a policy of row-level security on
each table calls a function for each row, which writes the stack of the row to PostgreSQL's log.

It is called for the rows that fulfil the conditions of the statement on their table, also for those
that the statement does not return.
"""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import asyncpg

from tests.support.postgres import open_directory
from tests.support.replication import USER, PostgresNode

#: Not a superuser, because these see all rows. It owns the tables, which its policies apply to.
ACCOUNT = "headgate_server"
OPTIONS = {
    "log_error_verbosity": "terse", "log_min_error_statement": "panic", "log_line_prefix": "%p ",
    "autovacuum": "off",
    "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
}  # fmt: skip
CREATE_FUNCTION = r"""
create function note_row(kind text, id uuid) returns boolean language plpgsql volatile as $$
begin
    raise log 'row % % % % %', kind, id, extract(epoch from statement_timestamp()),
        md5(current_query()), left(regexp_replace(current_query(), '\s+', ' ', 'g'), 80);
    return true;
end $$
"""
#: The tables with rows of a stack, and the column with its ID.
TABLES = """
select c.relname::text, a.attname::text
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid
   and a.attname = case c.relname when 'stack' then 'id' else 'stack_id' end
 where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
"""
#: So that small tables are not read from end to end, whatever the condition is.
PRETEND_LARGE = """
update pg_class set reltuples = 1000000, relpages = 1
 where relnamespace = 'public'::regnamespace and relkind in ('r', 'i')
"""
#: Without this, PostgreSQL uses indexes only for conditions that cannot reveal rows.
ALLOW_ALL_CONDITIONS = "update pg_proc set proleakproof = true where not proleakproof"
CREATE_POLICY = """
create policy note on {table} using (note_row('{table}', {column}));
alter table {table} enable row level security;
alter table {table} force row level security;
"""
ROW = re.compile(
    r"^(?P<process>\d+) LOG:  row (?P<table>\w+) (?P<stack>[0-9a-f-]+|<NULL>) (?P<time>[\d.]+)"
    r" (?P<digest>[0-9a-f]{32}) (?P<text>.*)$"
)


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a statement. digest, text: of the statement, and its beginning. stacks: the
    IDs in its rows, by table."""

    digest: str
    text: str
    stacks: Mapping[str, set[UUID]] = field(default_factory=lambda: defaultdict(set))

    def all_stacks(self) -> set[UUID]:
        return set[UUID]().union(*self.stacks.values())


class ObservedServer:
    def __init__(self, node: PostgresNode, log: Path) -> None:
        self._node, self._log = node, log
        self._begin = 0

    @property
    def url(self) -> str:
        return f"postgresql://{ACCOUNT}@127.0.0.1:{self._node.port}/headgate"

    async def start_recording(self) -> None:
        """After the migrations. Rows of later statements are recorded."""
        connection = await self.administer()
        try:
            await connection.execute(CREATE_FUNCTION)
            for table, column in await connection.fetch(TABLES):
                await connection.execute(CREATE_POLICY.format(table=table, column=column))
            await connection.execute(PRETEND_LARGE)
            await connection.execute(ALLOW_ALL_CONDITIONS)
        finally:
            await connection.close()
        self._begin = self._log.stat().st_size

    async def administer(self) -> asyncpg.Connection:
        """A connection whose statements are not recorded."""
        return await asyncpg.connect(
            host="127.0.0.1", port=self._node.port, user=USER, database="headgate"
        )

    def executions(self) -> list[Execution]:
        """The executions of statements that have read or written rows of stacks."""
        found: dict[tuple[str, str, str], Execution] = {}
        with self._log.open(errors="replace") as log:
            log.seek(self._begin)
            for line in log:
                if (row := ROW.match(line)) and row["stack"] != "<NULL>":
                    key = (row["process"], row["time"], row["digest"])
                    one = found.setdefault(key, Execution(row["digest"], row["text"]))
                    one.stacks[row["table"]].add(UUID(row["stack"]))
        return [*found.values()]


@asynccontextmanager
async def observed_server() -> AsyncIterator[ObservedServer]:
    with open_directory() as folder:
        node = PostgresNode(folder, "observed")
        await node.initialize()
        try:
            await node.start(**OPTIONS)
            await node.execute(f"create role {ACCOUNT} login")
            await node.execute(f"create database headgate owner {ACCOUNT}")
            yield ObservedServer(node, folder / "observed.log")
        finally:
            node.kill()
