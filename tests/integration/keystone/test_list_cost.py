"""What a list of stacks costs in mode keystone, in statements and in requests to Keystone."""

import pytest

from tests.integration.keystone.test_keystone import home, run_with_keystone, token
from tests.support.keystone import Keystone, Project
from tests.support.program import resource, template
from tests.support.statement_log import statement_log

__all__ = ["home"]  # a fixture
NAMES = [f"s{number}" for number in range(7)]
#: By query: the listed stacks and the statements.
LISTS = {
    "": (7, 1),
    "?limit=1": (1, 1),
    "?name=s3": (1, 1),
    "?with_count=true": (7, 2),
}


async def test_a_list_of_stacks_is_one_statement_and_asks_keystone_nothing(
    database_url: str, keystone: Keystone, home: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"cache_ttl": "1h"}
    with statement_log(monkeypatch) as log:
        async with run_with_keystone(database_url, keystone, home, more=settings) as run:
            headers = await token(keystone, home, "member")
            for name in NAMES:
                body = {"stack_name": name, "template": template({"a": resource()})}
                status, response = await run.call("POST", "/stacks", body, headers=headers)
                assert status == 201, response
            keystone.stop()  # the token has been verified
            try:
                for query, (listed, statements) in LISTS.items():
                    url = f"{run.url}/v1/{run.project}/stacks{query}"
                    async with run.session.get(url, headers=headers) as answer:
                        assert answer.status == 200
                        assert len((await answer.json())["stacks"]) == listed
                        sent = log.of_request(answer.headers["X-Openstack-Request-Id"])
                    assert len(sent) == statements, (query, sent)
            finally:
                await keystone.start()
