"""A template of as many resources as the operator allows is accepted."""

import asyncio
import io

import orjson

from tests.support.program import program
from tests.unit.hub.test_large_templates import MANY, RAISED, text

#: With room for a busy machine: it takes a few seconds.
BOUNDED = 240.0


async def test_fifty_thousand_resources_are_accepted_where_the_setting_says_so(
    database_url: str,
) -> None:
    large = 16_777_216
    settings = {**RAISED, "server.max_body": large, "server.request_timeout": "240s"}
    async with program(database_url, settings) as run, asyncio.timeout(BOUNDED):
        body = io.BytesIO(orjson.dumps({"template": text(MANY)}))
        status, said = await run.call("POST", "/validate", data=body)
        assert status == 200, said
        body = io.BytesIO(orjson.dumps({"template": text(MANY + 1)}))
        status, said = await run.call("POST", "/validate", data=body)
        assert status == 400 and "[quotas] resources_per_stack" in said["error"]["message"]
