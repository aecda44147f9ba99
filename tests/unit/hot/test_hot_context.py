"""The section `context` of an environment: the region of the stack."""

from typing import Any

import pytest

from engine.errors import Findings, Invalid
from engine.hot.environment.environment import parse_environment
from engine.hot.environment.merging import merge_files, merge_into_stored

Json = Any


def test_the_environment_names_the_region() -> None:
    assert parse_environment({"context": {"region_name": "RegionTwo"}}).region == "RegionTwo"
    assert parse_environment({"context": {}}).region == ""
    assert parse_environment({}).region == ""


@pytest.mark.parametrize("wrong", ["", " ", 2, None, "a\nb", "r" * 256, ["RegionTwo"]])
def test_a_region_is_a_text(wrong: Json) -> None:
    with pytest.raises(Invalid) as caught:
        parse_environment({"context": {"region_name": wrong}})
    (finding,) = caught.value.findings
    assert finding.place == "context.region_name"
    assert "service catalog" in finding.remedy


@pytest.mark.parametrize("key", ["cloud", "auth_url", "ca_cert", "credential_secret_id"])
def test_another_cloud_is_refused_with_the_type_for_it(key: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_environment({"context": {key: "x"}})
    (finding,) = caught.value.findings
    assert finding.place == f"context.{key}"
    assert "OS::Heat::Stack" in finding.remedy


def test_an_unknown_key_is_refused_with_the_known_one() -> None:
    with pytest.raises(Invalid) as caught:
        parse_environment({"context": {"region": "RegionTwo"}})
    (finding,) = caught.value.findings
    assert finding.place == "context.region" and "region_name" in finding.remedy


def test_a_later_file_and_an_update_name_another_region() -> None:
    one, two = ({"context": {"region_name": name}} for name in ("One", "Two"))
    merged = merge_files([("a", one), ("b", two)], {}, Findings())
    assert merged["context"] == {"region_name": "Two"}
    assert merge_into_stored(one, two)["context"] == {"region_name": "Two"}
    assert merge_into_stored(one, {})["context"] == {"region_name": "One"}
