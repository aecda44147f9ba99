"""Adds the templates at URLs that a request refers to, from the hosts that the operator allows."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from aiohttp import web

from engine.errors import Finding, Invalid, MissingTemplates
from engine.service.requests.requests import StackRequest
from hub.api.app_context import context_of, project_of
from hub.api.orchestration.request_texts import fetched_of

T = TypeVar("T")
#: Templates for one request.
MAX_FETCHED = 20
#: Place of the finding about too many templates.
PLACE = "files"

#: Returns the text at a URL. Raises Invalid.
Fetch = Callable[[str], Awaitable[str]]


async def with_templates(
    request: web.Request, new: StackRequest, work: Callable[[StackRequest], Awaitable[T]]
) -> T:
    """Call work with the request, again with the templates that it refers to. Raises Invalid."""
    context = context_of(request)
    max_bytes = context.settings.quotas.for_project(project_of(request)).template_bytes
    return await with_fetched_templates(
        lambda fetched: work(replace(new, files={**fetched, **new.files}) if fetched else new),
        lambda url: context.fetch_template(url, max_bytes),
        fetched_of(request),
    )


async def with_fetched_templates(
    work: Callable[[Mapping[str, str]], Awaitable[T]],
    fetch: Fetch,
    fetched: dict[str, str] | None = None,
) -> T:
    """Call work with templates by URL, again after each MissingTemplates. Raises Invalid.

    fetched: gets the templates.
    """
    fetched = {} if fetched is None else fetched
    while True:
        try:
            return await work(fetched)
        except MissingTemplates as missing:
            await _fetch(missing, fetched, fetch)


async def _fetch(missing: MissingTemplates, fetched: dict[str, str], fetch: Fetch) -> None:
    urls = sorted(missing.urls - fetched.keys())
    if not urls:
        raise Invalid(missing.findings, missing.warnings)
    if len(fetched) + len(urls) > MAX_FETCHED:
        reason = f"More than {MAX_FETCHED} templates would have to be fetched."
        raise Invalid([Finding(PLACE, reason, "Send them in `files`.", "RequestLimitExceeded")])
    failed: dict[str, Sequence[Finding]] = {}

    async def fetch_one(url: str) -> None:
        try:
            fetched[url] = await fetch(url)
        except Invalid as error:
            failed[url] = error.findings

    async with asyncio.TaskGroup() as group:
        for url in urls:
            group.create_task(fetch_one(url))
    if failed:
        raise Invalid(_explain(missing.findings, failed), missing.warnings)


def _explain(
    missing: Sequence[Finding], failed: Mapping[str, Sequence[Finding]]
) -> Sequence[Finding]:
    """Return why templates cannot be fetched, at the places that refer to these."""
    found: list[Finding] = []
    for url, reasons in failed.items():
        about = f'Could not fetch remote template "{url}"'
        uses = [one for one in missing if one.reason.startswith(f"{about}: ")]
        found += [
            replace(use, reason=f"{about}: {one.reason}", remedy=one.remedy, code=one.code)
            for use in uses or [Finding(PLACE, about, "")]
            for one in reasons
        ]
    return found
