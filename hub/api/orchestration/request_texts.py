"""Positions of errors and warnings in the texts that a request has sent."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from aiohttp import web

from engine.errors import BODY, ENVIRONMENT, TEMPLATE, Finding, Invalid
from engine.hot.syntax.source_lines import locate
from engine.service import StackRequest
from hub.api.app_context import context_of, project_of
from hub.api.orchestration import responses


def texts_of(new: StackRequest) -> dict[str, str]:
    """The texts of a request by their names in findings. Documents sent as objects have none."""
    own = {TEMPLATE: new.template, ENVIRONMENT: new.environment}
    texts = {**new.files, **{name: text for name, text in own.items() if isinstance(text, str)}}
    texts.pop(BODY, None)
    return texts


@asynccontextmanager
async def locate_errors(request: web.Request, new: StackRequest) -> AsyncIterator[None]:
    """Add positions to the errors that the body raises."""
    try:
        yield
    except Invalid as error:
        error.findings = tuple(await _locate(request, new, error.findings))
        raise


async def warning_documents(
    request: web.Request, new: StackRequest, warnings: Sequence[Finding]
) -> list[responses.Warning]:
    located = await _locate(request, new, warnings) if warnings else ()
    return [
        {
            "code": one.code,
            "message": f"{one.reason.rstrip('.')}. {one.remedy}".rstrip(),
            "path": one.shown_place,
            "file": None if one.file == BODY else one.file or None,
            "line": one.line or None,
            "column": one.column or None,
            "quote": one.quote or None,
        }
        for one in located
    ]


async def _locate(
    request: web.Request, new: StackRequest, findings: Sequence[Finding]
) -> list[Finding]:
    work = partial(locate, findings, texts_of(new), new.environment_files)
    return await context_of(request).engine.thread_pool(work, project_of(request))
