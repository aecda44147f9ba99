"""A filter of Swift that logs the requests of clients: method and path of each, one per line."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def filter_factory(
    _common: dict[str, str], path: str, **_name: str
) -> Callable[[Application], Application]:
    """path: of the log."""
    log = Path(path)

    def wrap(application: Application) -> Application:
        def respond(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            query = environ.get("QUERY_STRING")
            uri = f"{environ['PATH_INFO']}{f'?{query}' if query else ''}"
            with log.open("a") as file:
                file.write(f"{environ['REQUEST_METHOD']} {uri}\n")
            return application(environ, start_response)

        return respond

    return wrap
