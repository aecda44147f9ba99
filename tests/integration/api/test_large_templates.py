"""A template with as many resources as the quota allows is accepted."""

import asyncio
import io

import orjson

from tests.support.changes import error_text
from tests.support.program import program
from tests.unit.hub.test_large_templates import MANY, RAISED, text

#: Seconds; a few are enough on an idle machine.
MAX_SECONDS = 240.0


async def test_fifty_thousand_resources_are_accepted_if_the_quota_allows(
    database_url: str,
) -> None:
    large = 16_777_216
    settings = {**RAISED, "server.max_body": large, "server.request_timeout": "240s"}
    async with program(database_url, settings) as run, asyncio.timeout(MAX_SECONDS):
        body = io.BytesIO(orjson.dumps({"template": text(MANY)}))
        status, response = await run.call("POST", "/validate", data=body)
        assert status == 200, response
        body = io.BytesIO(orjson.dumps({"template": text(MANY + 1)}))
        status, response = await run.call("POST", "/validate", data=body)
        assert status == 400 and "[quotas] resources_per_stack" in error_text(response["error"])
