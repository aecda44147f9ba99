"""Logging: structlog, and the loggers of the standard library through the same processors.

Events are named after what happened (``hook.opened``), values are fields. The handler of a
request or traversal binds its IDs with ``structlog.contextvars.bound_contextvars``. Fields with
secret names are masked.
"""

import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from engine.store.database_errors import FAILURES

Style = Literal["auto", "json", "console"]

MASK = "******"

#: Names of fields that are secret, such as ``signal_token`` and ``X-Auth-Key``.
SECRET = re.compile(
    r"(?i)(?:^|[_\W])(?:tokens?|secrets?|password|passwd|passphrase|authorization|cookie"
    r"|credentials?|signature|(?:api|private|signing|auth)[_\W]?key)(?:$|[_\W])"
)
#: Secrets in text: the password or token in a URL, and credentials after ``Bearer``.
IN_TEXT = re.compile(
    r"(?P<url>\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@/]+(?=@)"
    r"|(?P<scheme>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]+"
    r"|(?P<query>[?&]token=)[^\s&#'\"]+"
    r"|\bwhsec_[A-Za-z0-9+/=_-]+",
    re.IGNORECASE,
)

#: Libraries of which only warnings are logged.
QUIET = ("aiohttp.access", "asyncio", "aio_pika", "aiormq")

#: Loggers of database connections, and the event that replaces their messages.
CONNECTIONS = {
    "asyncpg.pool": "database.reconnecting",
    # After a lost connection, the event loop logs "Future exception was never retrieved".
    "asyncio": "database.connection_lost",
}


class ConnectionLines(logging.Filter):
    """Replaces asyncpg's stack traces of lost and failed connections by one line each. The caller
    logs the consequence."""

    def __init__(self, event: str) -> None:
        super().__init__()
        self._event = event

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, FAILURES):
            record.msg, record.args, record.exc_info = self._event, (), None
            record.exc_text = None
            record.reason = (str(error) or type(error).__name__).splitlines()[0]
        return True


def set_up_logging(
    style: Style,
    *,
    level: str = "info",
    stream: TextIO | None = None,
    for_good: bool = False,
    process: int | None = None,
) -> None:
    """Send all logging to a stream (standard error). May be called again; the last call counts.

    style: ``json``, a line per event; ``console``, for people; ``auto``: for people on a terminal.
    level: ``debug`` ... ``error``. for_good: it is not called again, so loggers can be
    cached, which halves the cost of a line. process: its number, a field of each line.
    """
    target = stream or sys.stderr
    if style == "auto":
        style = "console" if target.isatty() else "json"
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=for_good,
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                redact,
                *([] if process is None else [_add_field("process", process)]),
                *_renderers(style, target),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(number)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    for name, event in CONNECTIONS.items():
        logging.getLogger(name).filters = [ConnectionLines(event)]
    logging.captureWarnings(True)


def _add_field(name: str, value: int) -> Processor:
    def add(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event.setdefault(name, value)
        return event

    return add


def redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Mask the values of fields with secret names, at any depth, and secrets in text."""
    return {name: _mask(str(name), value) for name, value in event.items()}


def _mask(name: str, value: Any) -> Any:
    if SECRET.search(name) and value is not None:
        return MASK
    match value:
        case str():
            return IN_TEXT.sub(_mask_of, value)
        case Mapping():
            return {key: _mask(str(key), below) for key, below in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_mask("", below) for below in value]
        case _:
            return value


def _mask_of(match: re.Match[str]) -> str:
    return (match["url"] or match["scheme"] or match["query"] or "") + MASK


def _renderers(style: Style, target: TextIO) -> list[Processor]:
    if style == "console":
        return [
            structlog.dev.ConsoleRenderer(
                colors=target.isatty(),
                sort_keys=False,
                # The default formatter shows the values of variables, which can be secret.
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    return [
        structlog.processors.JSONRenderer(serializer=_json),
    ]


def _json(event: EventDict, **_: Any) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
