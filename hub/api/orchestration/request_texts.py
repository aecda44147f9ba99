"""Positions of errors and warnings in the texts of a request."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from aiohttp import web

from engine.errors import (
    BODY,
    ENVIRONMENT,
    TEMPLATE,
    Finding,
    Findings,
    HeadgateError,
    Invalid,
)
from engine.hot.syntax.source_lines import locate
from engine.service import StackRequest
from hub.api.app_context import context_of, project_of
from hub.api.orchestration import responses

#: The templates that were fetched for a request, by URL.
FETCHED: web.RequestKey[dict[str, str]] = web.RequestKey("fetched_templates", dict)


def fetched_of(request: web.Request) -> dict[str, str]:
    """The templates that were fetched for a request, by URL; can be changed."""
    if FETCHED not in request:
        request[FETCHED] = {}
    return request[FETCHED]


def texts_of(new: StackRequest) -> dict[str, str]:
    """The texts of a request by their names in findings. Documents sent as objects have none."""
    own = {TEMPLATE: new.template, ENVIRONMENT: new.environment}
    texts = {**new.files, **{name: text for name, text in own.items() if isinstance(text, str)}}
    texts.pop(BODY, None)
    return texts


@asynccontextmanager
async def locate_errors(
    request: web.Request, new: StackRequest, warned: Findings
) -> AsyncIterator[None]:
    """Add positions to the errors that the body raises, and the warnings about the request.

    warned: has those that were found before the error.
    """
    try:
        yield
    except HeadgateError as error:
        refused = error.findings if isinstance(error, Invalid) else ()
        found = Findings()
        found.warn_all((*new.warnings, *warned.warnings, *error.warnings))
        known = {_identity(one) for one in refused}  # warnings of a strict request are errors
        warnings = [one for one in found.warnings if _identity(one) not in known]
        located = await _locate(request, new, [*refused, *warnings])
        if isinstance(error, Invalid):
            error.findings = tuple(located[: len(refused)])
        error.warnings = tuple(located[len(refused) :])
        raise


def _identity(one: Finding) -> tuple[str, str, str]:
    return one.file, one.shown_place, one.reason


async def warning_documents(
    request: web.Request, new: StackRequest, warnings: Sequence[Finding]
) -> list[responses.Warning]:
    located = await _locate(request, new, warnings)
    return [warning_document(one) for one in located]


def warning_document(one: Finding) -> responses.Warning:
    return {
        "code": one.code,
        "message": f"{one.reason.rstrip('.')}. {one.remedy}".rstrip(),
        "path": one.shown_place,
        "file": None if one.file == BODY else one.file or None,
        "line": one.line or None,
        "column": one.column or None,
        "quote": one.quote or None,
    }


async def _locate(
    request: web.Request, new: StackRequest, findings: Sequence[Finding]
) -> list[Finding]:
    if not findings:
        return []
    fetched = fetched_of(request)
    texts = texts_of(replace(new, files={**fetched, **new.files}) if fetched else new)
    work = partial(locate, findings, texts, new.environment_files)
    return await context_of(request).engine.thread_pool(work, project_of(request))
