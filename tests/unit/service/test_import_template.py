"""What a template that imports objects must not contain."""

import pytest
import yaml

from engine.hooks.operator import OperatorRule, has_rule_for
from engine.service.imports.import_template import (
    ImportedObject,
    ImportTemplate,
    write_import_template,
)
from engine.types.http.requests import import_error, secret_header_places
from engine.types.http.schema import SCHEMA
from engine.words import Json

SECRET = "Bearer s3cr3t"


def write(properties: Json) -> ImportTemplate:
    secrets = list(secret_header_places(properties))
    return write_import_template([ImportedObject(SCHEMA, "1", "", properties, secrets=secrets)])


def test_headers_are_hidden_parameters_one_for_equal_values() -> None:
    headers = {"Authorization": SECRET, "accept": "text/html", "X-None": None}
    written = write(
        {
            "headers": headers,
            "create": {"url": "/", "headers": {"authorization": SECRET, "X-Key": "other"}},
            "list": {"url": "/", "headers": {"X-Key": "other"}},
        }
    )
    assert SECRET not in written.text and "other" not in written.text
    template = yaml.safe_load(written.text)
    hidden = {"type": "string", "hidden": True}
    names = ["http_headers_Authorization", "http_create_headers_X_Key"]
    assert template["parameters"] == dict.fromkeys(names, hidden)
    assert list(written.required) == names
    properties = template["resources"]["http"]["properties"]
    token, key = ({"get_param": name} for name in names)
    assert properties["headers"] == {"Authorization": token, "accept": "text/html", "X-None": None}
    assert properties["create"]["headers"] == {"authorization": token, "X-Key": key}
    assert properties["list"]["headers"] == {"X-Key": key}


def test_headers_beside_what_looks_like_a_function_are_not_in_a_default() -> None:
    body = {"get_param": "x"}
    written = write({"update": {"url": "/", "body": body, "headers": {"X-Key": SECRET}}})
    assert SECRET not in written.text
    parameters = yaml.safe_load(written.text)["parameters"]
    assert parameters["http_update"] == {"type": "json", "hidden": True}
    assert "http_update" in written.required


@pytest.mark.parametrize(
    ("properties", "place"),
    [
        *(({"read": {"method": one}}, "read.method") for one in ("POST", "PUT", "PATCH", "DELETE")),
        ({"read": {"body": ""}}, "read.body"),
        ({"read": {"body": {}}}, "read.body"),
        ({"read": {"headers": {"x-http-Method": "PUT"}}}, "read.headers.x-http-Method"),
        ({"read": {}, "headers": {"X-Method-Override": "PUT"}}, "headers.X-Method-Override"),
        ({"read": {}, "headers": {"X-Key": "PUT"}}, ""),
        ({"read": {"method": "GET", "body": None}}, ""),
        ({"read": {"method": "HEAD", "headers": {"X-HTTP-Method": None}}}, ""),
    ],
)
def test_an_import_reads_with_get_or_head_only(properties: Json, place: str) -> None:
    wrong = import_error(properties)
    assert (wrong[0] if wrong else "") == (f"properties.{place}" if place else "")


@pytest.mark.parametrize(
    ("projects", "types", "applies"),
    [
        (["*"], [], True),
        (["p"], ["OS::*", "Headgate::*"], True),
        (["p"], ["OS::*"], False),
        (["other"], [], False),
    ],
)
def test_rules_apply_to_projects_and_types(
    projects: list[str], types: list[str], *, applies: bool
) -> None:
    rules = [OperatorRule(projects, "*", types, {}, "hooks.rules[0]")]
    assert has_rule_for(rules, "p", "Headgate::HTTP") is applies
