"""The first line in the log of a server. This module loads nothing of the server, which takes
seconds."""

import structlog
from structlog.typing import FilteringBoundLogger

from hub.log import set_up_logging
from hub.program.process_slot import count_processes
from hub.settings.settings import Settings

log: FilteringBoundLogger = structlog.get_logger()


def log_start(settings: Settings, roles: frozenset[str], *, has_all_roles: bool) -> None:
    """Log how many processes start, where they will listen, and where their data is."""
    count = count_processes(settings, has_all_roles=has_all_roles)
    process = 0 if count > 1 else None
    set_up_logging(settings.log.style, level=settings.log.level, process=process)
    kind = "external" if settings.database.url.get_secret_value() else "embedded"
    if settings.cells.databases:
        kind = "cells"
    log.info(
        "headgate.starting",
        listen=settings.server.listen if "api" in roles else None,
        data_dir=str(settings.database.data_dir) if kind == "embedded" else None,
        database=kind,
        roles=sorted(roles),
        processes=count,
    )
