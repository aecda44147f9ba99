"""Templates at addresses: fetched in turns, until none is missing or something is wrong."""

import asyncio
from collections.abc import Mapping

import pytest

from engine.errors import Finding, Invalid
from hub.api.nested_templates import MOST, TemplatesWanted, with_fetched

#: What each template names in its turn.
NAMES: Mapping[str, set[str]] = {"top": {"a", "b"}, "a": {"c"}, "b": {"c"}, "c": set()}


async def work(fetched: Mapping[str, str]) -> set[str]:
    """All that is there, once all is."""
    seen, missing, waiting = set[str](), set[str](), ["top"]
    while waiting:
        for name in NAMES[waiting.pop()] - seen - missing:
            if name in fetched:
                seen.add(name)
                waiting.append(name)
            else:
                missing.add(name)
    if missing:
        raise TemplatesWanted([Finding("place", "missing")], missing)
    return seen


async def test_what_templates_name_is_fetched_once_each_turn_together() -> None:
    turns: list[str] = []
    both = asyncio.Event()

    async def fetch(address: str) -> str:
        turns.append(address)
        if {"a", "b"} <= set(turns):
            both.set()
        async with asyncio.timeout(10):
            await both.wait()
        return "text"

    assert await with_fetched(work, fetch) == {"a", "b", "c"}
    assert sorted(turns[:2]) == ["a", "b"] and turns[2:] == ["c"]


async def test_all_that_cannot_be_fetched_is_told() -> None:
    async def fetch(address: str) -> str:
        raise Invalid([Finding("template_url", f"no {address}", "Send it.", "NotSupported")])

    with pytest.raises(Invalid) as caught:
        await with_fetched(work, fetch)
    assert sorted(map(str, caught.value.findings)) == [
        f'files: Could not fetch remote template "{name}": no {name}. Send it.' for name in "ab"
    ]
    assert caught.value.code == "NotSupported"


async def test_no_more_than_so_many() -> None:
    async def endless(fetched: Mapping[str, str]) -> None:
        raise TemplatesWanted([Finding("place", "missing")], {str(len(fetched)), *fetched})

    asked: list[str] = []

    async def fetch(address: str) -> str:
        asked.append(address)
        return "text"

    with pytest.raises(Invalid) as caught:
        await with_fetched(endless, fetch)
    assert caught.value.code == "RequestLimitExceeded" and len(asked) == MOST


async def test_what_is_asked_for_again_ends_it() -> None:
    async def never(fetched: Mapping[str, str]) -> None:
        raise TemplatesWanted([Finding("place", "missing")], {"a"})

    async def fetch(address: str) -> str:
        return "text"

    with pytest.raises(Invalid, match="place: missing"):
        await with_fetched(never, fetch)
