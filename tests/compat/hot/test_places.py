"""Every error of a template that is sent as an object names its place, and no line."""

import json
from collections.abc import Iterator

import yaml

from tests.compat.hot.cases import TABLES
from tests.support.program import Json, program

#: Tables of which each case has errors of another kind.
CHECKED = ("parameters", "sections", "environments", "cfn", "updates", "validations", "nested")
DOCUMENTS = ("template", "environment")


def bodies() -> Iterator[tuple[str, Json]]:
    """The requests by name, with documents as objects. A text that is no map stays out."""
    for table in CHECKED:
        for case in TABLES[table]():
            request = case["request"]
            body = dict(request.get("body") or request.get("create") or request)
            texts = {name: body[name] for name in DOCUMENTS if isinstance(body.get(name), str)}
            try:
                objects = {name: yaml.safe_load(text) for name, text in texts.items()}
                json.dumps(objects)
            except (yaml.YAMLError, TypeError):
                continue
            if all(isinstance(one, dict) for one in objects.values()):
                yield case["name"], body | objects


async def test_every_error_names_its_place_and_a_line_of_files_only(database_url: str) -> None:
    refused, wrong = 0, []
    async with program(database_url) as running:
        for name, body in bodies():
            status, response = await running.call("POST", "/validate", body)
            if status != 400:
                continue
            refused += 1
            for one in response["error"]["findings"]:
                pretends = one["line"] is not None and one["file"] not in body.get("files", {})
                if not one["place"] or pretends or (one["quote"] and one["line"] is None):
                    wrong.append((name, one))
    assert wrong == []
    assert refused > 150, refused
