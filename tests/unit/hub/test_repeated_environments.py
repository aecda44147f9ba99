"""Environment files that a request names more than once."""

import json

import pytest

from engine.errors import LimitReached
from engine.hot.syntax.document import DEFAULT_LIMITS
from engine.service import StackRequest
from engine.service.requests.parsing import (
    MAX_ENVIRONMENTS,
    OperatorEnvironment,
    ParsedRequest,
    read_request,
)

TEMPLATE = """\
heat_template_version: 2021-04-16
parameters: {l: {type: comma_delimited_list}}
"""


def environment_files(names: list[str], value: str) -> ParsedRequest:
    document = {"parameters": {"l": value}, "parameter_merge_strategies": {"l": "merge"}}
    request = StackRequest(
        name="s",
        template=TEMPLATE,
        environment_files=names,
        files={"e": json.dumps(document)},
    )
    return read_request(
        request, None, limits=DEFAULT_LIMITS, most_resources=10, operator=OperatorEnvironment()
    )


def test_a_file_named_twice_is_merged_twice() -> None:
    assert environment_files(["e", "e", "e"], "a").environment.parameters == {"l": "a,a,a"}


@pytest.mark.parametrize(
    ("names", "value"), [(["e"] * (MAX_ENVIRONMENTS + 1), ""), (["e"] * 4, "a" * 300_000)]
)
def test_a_file_named_too_often_is_refused(names: list[str], value: str) -> None:
    with pytest.raises(LimitReached, match="a file counts each time that the request names it"):
        environment_files(names, value)
