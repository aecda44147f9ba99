"""Output formats."""

import json
from typing import Any

import pytest
import yaml

from hub.cli.printing.formats import FormatError, format_document, read_format

STACK = {"stack_name": "web", "stack_status": "CREATE_COMPLETE", "id": "1", "tags": ["a", "b"]}


@pytest.mark.parametrize(
    ("text", "document", "expected"),
    [
        ("name", STACK, "web"),
        ("name", [STACK, STACK | {"stack_name": "db"}], "web\ndb"),
        ("name", {"resource_name": "w-a", "headgate_resource_name": 'w["a"]',
                  "resource_type": "T"}, 'w["a"]'),
        ("name", {"id": "7", "stack_name": "web", "point": "pre-create"}, "7"),
        ("name", [{"resource_type": "OS::Heat::None", "description": ""}], "OS::Heat::None"),
        ("name", [], ""),
        ("jsonpath={.stack_name}", STACK, "web"),
        ("jsonpath=.tags[*]", STACK, "a\nb"),
        ("jsonpath=$.tags", STACK, '["a","b"]'),
        ("jsonpath={[*].stack_name}", [STACK], "web"),
        ("jsonpath=$[?@.id == '1'].stack_name", [STACK], "web"),
        ("jsonpath={.nope}", STACK, ""),
    ],
)  # fmt: skip
def test_a_result_is_printed_in_a_format(text: str, document: Any, expected: str) -> None:
    assert format_document(document, read_format(text)) == expected


def test_json_and_yaml_have_the_whole_document() -> None:
    assert json.loads(format_document(STACK, read_format("json"))) == STACK
    assert yaml.safe_load(format_document(STACK, read_format("yaml"))) == STACK


@pytest.mark.parametrize("text", ["", "xml", "json=1", "jsonpath", "jsonpath=", "jsonpath={.a[}"])
def test_an_unknown_format_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match=r"jsonpath|JSONPath"):
        read_format(text)


def test_a_result_without_a_name_is_refused() -> None:
    with pytest.raises(FormatError, match="-o json"):
        format_document({"limit": 3}, read_format("name"))
