"""Builders for tests of CloudFormation templates."""

import pytest

from engine.errors import Invalid
from engine.hot.expressions.expression import Expression
from engine.words import Json
from tests.unit.hot.hot_support import defined

AWS = "AWSTemplateFormatVersion"
HEAT = "HeatTemplateFormatVersion"
DATES = {AWS: "2010-09-09", HEAT: "2012-12-12"}


def cfn(version: str = AWS, **sections: Json) -> dict[str, Json]:
    return {version: DATES[version], **sections}


def cfn_thing(**properties: Json) -> dict[str, Json]:
    return {"Type": "Test::Thing", "Properties": properties}


def cfn_value(
    snippet: Json, version: str = AWS, parameters: dict[str, Json] | None = None, **sections: Json
) -> Expression:
    """The expression of a snippet as property ``value``, next to a resource ``b``."""
    resources = {"a": cfn_thing(value=snippet), "b": cfn_thing()}
    template = cfn(version, **{"Resources": resources} | sections)
    return defined(template, parameters=parameters).resources["a"].properties["value"]


def cfn_fault(snippet: Json, version: str = AWS, **sections: Json) -> str:
    """The first message about a snippet."""
    with pytest.raises(Invalid) as caught:
        cfn_value(snippet, version, **sections)
    return str(caught.value.findings[0])
