"""Templates that other templates name by their URLs, fetched before they are read."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar

from engine.errors import Finding, Findings, Invalid

#: For one request.
MOST = 20
PLACE = "files"

T = TypeVar("T")


class TemplatesWanted(Invalid):
    """What was sent names templates that are to be fetched. addresses: all that are known so far;
    each of them may name more."""

    def __init__(self, findings: Sequence[Finding], addresses: AbstractSet[str]) -> None:
        super().__init__(findings)
        self.addresses = addresses


async def with_fetched(
    work: Callable[[Mapping[str, str]], Awaitable[T]], fetch: Callable[[str], Awaitable[str]]
) -> T:
    """What work gives when it has the templates that it asks for with TemplatesWanted.

    fetch: the text at an address, in bounded time; raises Invalid. Raises Invalid as well.
    """
    fetched: dict[str, str] = {}
    while True:
        try:
            return await work(fetched)
        except TemplatesWanted as wanted:
            await _fetch(wanted, fetched, fetch)


async def _fetch(
    wanted: TemplatesWanted, fetched: dict[str, str], fetch: Callable[[str], Awaitable[str]]
) -> None:
    addresses = sorted(wanted.addresses - fetched.keys())
    if not addresses:
        raise Invalid(wanted.findings)
    if len(fetched) + len(addresses) > MOST:
        reason = f"More than {MOST} templates would have to be fetched."
        raise Invalid([Finding(PLACE, reason, "Send them in `files`.", "RequestLimitExceeded")])
    findings = Findings()

    async def one(address: str) -> None:
        try:
            fetched[address] = await fetch(address)
        except Invalid as error:
            said = f'Could not fetch remote template "{address}"'
            findings.all += [
                replace(found, place=PLACE, reason=f"{said}: {found.reason}")
                for found in error.findings
            ]

    async with asyncio.TaskGroup() as group:
        for address in addresses:
            group.create_task(one(address))
    findings.raise_if_any()
