"""The size of a template, as text and as an object."""

import json

import pytest

from engine.errors import Invalid
from engine.hot.syntax.document import DocumentLimits
from engine.service.requests.parsing import OperatorEnvironment, read_request
from engine.service.requests.requests import StackRequest
from engine.words import Json

LIMITS = DocumentLimits(max_bytes=1000)


def template(size: int) -> dict[str, Json]:
    """A template whose compact JSON has this many bytes."""
    document: dict[str, Json] = {"heat_template_version": "2021-04-16", "description": ""}
    left = size - len(json.dumps(document, separators=(",", ":")))
    return document | {"description": "x" * left}


def read(request: StackRequest) -> None:
    read_request(request, None, limits=LIMITS, most_resources=10, operator=OperatorEnvironment())


def as_text(document: Json) -> str:
    return json.dumps(document, separators=(",", ":"))


@pytest.mark.parametrize("form", [dict, as_text], ids=["object", "text"])
def test_a_template_above_the_size_limit_is_refused(form) -> None:  # type: ignore[no-untyped-def]
    read(StackRequest(template=form(template(1000))))
    with pytest.raises(Invalid) as error:
        read(StackRequest(template=form(template(1001))))
    assert error.value.findings[0].reason == "The template has 1001 bytes; the limit is 1000."
