"""headgate admin create-token prints the token in each format."""

import json

import pytest
import yaml

from tests.support.admin_command import run_admin
from tests.support.keys import key_file

WORDS = ("create-token", "ann", "--role", "admin", "--everywhere")


@pytest.mark.parametrize("output", ["json", "yaml"])
async def test_a_token_is_printed_as_a_document(database_url: str, output: str) -> None:
    settings = {"CREDENTIALS__KEY_FILE": str(key_file())}
    done = await run_admin(*WORDS, "-o", output, url=database_url, **settings)
    assert done.code == 0, done.err
    document = json.loads(done.out) if output == "json" else yaml.safe_load(done.out)
    assert (document["name"], document["roles"]) == ("ann", ["admin"])
    assert isinstance(document["id"], str) and document["token"]
