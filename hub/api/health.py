"""Health checks: of the API, of [metrics] address, and while a process waits for its database."""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field
from typing_extensions import TypedDict

from hub.api.routes import json_response


class Liveness(TypedDict):
    alive: Literal[True]


class ReadyServer(TypedDict):
    ready: Literal[True]
    missing: Annotated[list[str], Field(max_length=0)]


class UnreadyServer(TypedDict):
    ready: Literal[False]
    missing: Annotated[list[str], Field(min_length=1)]


def show_liveness() -> web.Response:
    return json_response(Liveness(alive=True))


def show_readiness(missing: list[str]) -> web.Response:
    """missing: the reasons why the process is not ready; empty: it is."""
    if missing:
        return json_response(UnreadyServer(ready=False, missing=missing), 503)
    return json_response(ReadyServer(ready=True, missing=[]))
