"""The bill of materials: what the lock files name, all of it, in CycloneDX's form."""

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from tools.sbom import document

ROOT = Path(__file__).parents[2]


def test_it_is_valid_by_the_schema_of_cyclonedx() -> None:
    pytest.importorskip("cyclonedx")
    folder = resources.files("cyclonedx.schema") / "_res"
    schemas = {
        one.name: json.loads(one.read_text(encoding="utf-8"))
        for one in folder.iterdir()
        if one.name.endswith(".SNAPSHOT.schema.json")
    }
    base = schemas["bom-1.6.SNAPSHOT.schema.json"]["$id"].rpartition("/")[0]
    known = [(f"{base}/{name}", Resource.from_contents(one)) for name, one in schemas.items()]
    registry: Any = Registry().with_resources(known)
    validator = jsonschema.Draft7Validator(
        schemas["bom-1.6.SNAPSHOT.schema.json"], registry=registry
    )
    assert [error.message for error in validator.iter_errors(document())] == []
    wrong = document()
    wrong["components"][0]["type"] = "nothing"
    assert list(validator.iter_errors(wrong))


@pytest.mark.parametrize("lock", ["run.lock", "tracing.lock", "apprise.lock"])
def test_every_locked_requirement_is_in_it_with_its_hashes(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()
    listed = {one["purl"]: one for one in document()["components"]}
    for name, version, rest in re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^[\w]|\Z)", text, re.M | re.S):
        component = listed[f"pkg:pypi/{name.lower()}@{version}"]
        kept = [one["value"] for one in component["properties"] if one["name"] == "python:sha256"]
        assert kept and kept == re.findall(r"sha256:([0-9a-f]{64})", rest)


def test_every_component_is_needed_by_something_that_is_in_it() -> None:
    found = document()
    refs = {one["bom-ref"] for one in found["components"]} | {"headgate"}
    assert len(refs) == len(found["components"]) + 1
    assert {one["ref"] for one in found["dependencies"]} <= refs
    needed = {ref for one in found["dependencies"] for ref in one["dependsOn"]}
    assert needed == refs - {"headgate"}
    assert any(ref.startswith("pkg:npm/%40codemirror/") for ref in refs)
