"""Templates at URLs are fetched in rounds, until none is missing or one fails."""

import asyncio
from collections.abc import Mapping

import pytest

from engine.errors import Finding, Invalid, MissingTemplates
from hub.api.orchestration.fetched_templates import MAX_FETCHED, with_fetched_templates

#: The templates that each template refers to.
NAMES: Mapping[str, set[str]] = {"top": {"a", "b"}, "a": {"c"}, "b": {"c"}, "c": set()}


async def work(fetched: Mapping[str, str]) -> set[str]:
    """The names of all templates; raises MissingTemplates until all are fetched."""
    seen, missing, waiting = set[str](), set[str](), ["top"]
    while waiting:
        for name in NAMES[waiting.pop()] - seen - missing:
            if name in fetched:
                seen.add(name)
                waiting.append(name)
            else:
                missing.add(name)
    if missing:
        raise MissingTemplates([Finding("place", "missing", "")], missing)
    return seen


async def test_each_template_is_fetched_once_and_each_round_is_concurrent() -> None:
    turns: list[str] = []
    both = asyncio.Event()

    async def fetch(address: str) -> str:
        turns.append(address)
        if {"a", "b"} <= set(turns):
            both.set()
        async with asyncio.timeout(10):
            await both.wait()
        return "text"

    assert await with_fetched_templates(work, fetch) == {"a", "b", "c"}
    assert sorted(turns[:2]) == ["a", "b"] and turns[2:] == ["c"]


async def test_all_failed_fetches_are_reported() -> None:
    async def fetch(address: str) -> str:
        raise Invalid([Finding("template_url", f"no {address}", "Send it.", "NotSupported")])

    with pytest.raises(Invalid) as caught:
        await with_fetched_templates(work, fetch)
    assert sorted(map(str, caught.value.findings)) == [
        f'files: Could not fetch remote template "{name}": no {name}. Send it.' for name in "ab"
    ]
    assert caught.value.code == "NotSupported"


async def test_the_number_of_fetched_templates_is_limited() -> None:
    async def unbounded(fetched: Mapping[str, str]) -> None:
        raise MissingTemplates([Finding("place", "missing", "")], {str(len(fetched)), *fetched})

    urls: list[str] = []

    async def fetch(address: str) -> str:
        urls.append(address)
        return "text"

    with pytest.raises(Invalid) as caught:
        await with_fetched_templates(unbounded, fetch)
    assert caught.value.code == "RequestLimitExceeded" and len(urls) == MAX_FETCHED


async def test_a_template_that_is_still_missing_ends_the_rounds() -> None:
    async def still_missing(fetched: Mapping[str, str]) -> None:
        raise MissingTemplates([Finding("place", "missing", "")], {"a"})

    async def fetch(address: str) -> str:
        return "text"

    with pytest.raises(Invalid, match="place: missing"):
        await with_fetched_templates(still_missing, fetch)
