"""Errors of the API, as results of an answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headgate.errors import RateLimitError, RequestError
from headgate.listener.notification import AnswerInvalid, HookClosed


@asynccontextmanager
async def read_refusals() -> AsyncIterator[None]:
    """Raises AnswerInvalid and HookClosed; RequestError if the request can be sent again."""
    try:
        yield
    except RateLimitError:
        raise
    except RequestError as error:
        if error.status == 400:
            raise AnswerInvalid(str(error)) from error
        if 400 <= error.status < 500:
            raise HookClosed(str(error)) from error
        raise
