"""The statements that this process sends to PostgreSQL, by connection and in order."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asyncpg.connection import Connection, LoggedQuery
from structlog.contextvars import get_contextvars

#: The first words of asyncpg's transaction statements.
BEGIN, COMMIT = "BEGIN", "COMMIT"
#: Parts of the statements with which a connection reads types before it first decodes them.
INTROSPECTION = ("typeinfo", "set_config('jit'")


class StatementLog:
    """Completed statements. A COPY is two: asyncpg first asks for the types of the columns.

    by_request: statements with the ID of the request of the API that sent them.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[int, str]] = []
        self.by_request: list[tuple[str, str]] = []

    def texts(self) -> list[str]:
        """All statements, also BEGIN and COMMIT, without those that read types."""
        return [text for _, text in self.entries if not any(one in text for one in INTROSPECTION)]

    def of_request(self, request_id: str) -> list[str]:
        """The statements of one request, without those that read types."""
        return [
            text
            for request, text in self.by_request
            if request == request_id and not any(one in text for one in INTROSPECTION)
        ]

    def transaction(self, containing: str) -> list[str]:
        """The statements of the only committed transaction with this text in one of them."""
        (found,) = [
            statements
            for statements in self._transactions()
            if any(containing in one for one in statements)
        ]
        return found

    def _transactions(self) -> Iterator[list[str]]:
        open_: dict[int, list[str]] = {}
        for connection, text in self.entries:
            if text.startswith(BEGIN):
                open_[connection] = []
            elif text.startswith(COMMIT) and connection in open_:
                yield open_.pop(connection)
            elif connection in open_ and not any(one in text for one in INTROSPECTION):
                open_[connection].append(text)


@contextmanager
def statement_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[StatementLog]:
    """Log the statements of connections that are opened within the block."""
    log, make, copy = StatementLog(), Connection.__init__, Connection.copy_records_to_table

    async def record_copy(connection: Connection, table: str, **options: Any) -> Any:
        log.entries += [(id(connection), f"columns of {table}"), (id(connection), f"copy {table}")]
        return await copy(connection, table, **options)

    def record(connection: Connection, *args: Any, **options: Any) -> None:
        make(connection, *args, **options)

        def logged(query: LoggedQuery) -> None:
            text = " ".join(query.query.split())
            log.entries.append((id(connection), text))
            if request := get_contextvars().get("request"):
                log.by_request.append((request, text))

        connection.add_query_logger(logged)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "__init__", record)
        patch.setattr(Connection, "copy_records_to_table", record_copy)
        yield log
