"""The OpenAPI document that is generated from the routes."""

from engine.types.software.deployed_server import PATH
from hub.api.application import all_routes
from hub.api.headgate.server_metadata import ACCESS_KEY, METHOD, SIGNATURE, VERSION
from hub.api.openapi import openapi
from tests.support.openapi_check import references

DOCUMENT = openapi(all_routes())


def test_each_route_exists_once() -> None:
    """A second one would answer no request."""
    routes = [(route.method, route.path) for route in all_routes()]
    assert sorted(routes) == sorted(set(routes))


def test_each_component_has_a_name_of_its_own() -> None:
    """pydantic qualifies names that two types share by their modules or by the direction."""
    names = DOCUMENT["components"]["schemas"]
    shared = [name for name in names if "__" in name or name.endswith(("-Input", "-Output"))]
    assert shared == []


def test_every_reference_leads_to_a_component() -> None:
    known = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert set(references(DOCUMENT)) <= known


def test_optional_keys_are_not_required() -> None:
    schema = DOCUMENT["components"]["schemas"]["CloudEvent"]
    assert set(schema["properties"]) - set(schema["required"]) == {
        "stackpath",
        "subject",
        "traceparent",
    }


def test_required_query_parameters_are_required_in_the_document() -> None:
    required = {
        (path, one["name"])
        for path, operations in DOCUMENT["paths"].items()
        for operation in operations.values()
        for one in operation["parameters"]
        if one["in"] == "query" and one.get("required")
    }
    assert required == {
        ("/v1/{project}/ids", "prefix"),
        ("/oidc/callback", "state"),
        *((PATH, name) for name in ("Action", ACCESS_KEY, VERSION, METHOD, SIGNATURE)),
    }


def test_nullable_fields_are_described_as_such() -> None:
    limit = DOCUMENT["components"]["schemas"]["Quota"]["properties"]["limit"]
    assert limit == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
