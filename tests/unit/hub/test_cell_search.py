"""Cells that are asked at once."""

import asyncio
import gc
from typing import Any

import pytest

from hub.api.cell_search import find_in_cells


async def test_errors_of_several_cells_are_raised_once_and_none_is_logged() -> None:
    unread: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unread.append(context))

    async def fail() -> None:
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        await find_in_cells({"a": fail, "b": fail, "c": fail})
    gc.collect()
    assert unread == []
