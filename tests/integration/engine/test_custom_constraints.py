"""Custom constraints of resource types: which values are validated, the errors, and
what is stored.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.custom_constraints import CustomConstraint, ValidationContext, Verdict
from engine.words import Json
from tests.support.program import Program


@dataclass
class Catalogue:
    """Simulates a cloud: its flavors, and the validations so far."""

    flavors: set[str] = field(default_factory=lambda: {"small", "large"})
    checked: list[tuple[Json, str, str]] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    started: asyncio.Event = field(default_factory=asyncio.Event)


class Flavor(CustomConstraint):
    name = "acme.flavor"

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    async def validate(self, value: Json, context: ValidationContext) -> str | None:
        self.catalogue.checked.append((value, context.project, context.credential))
        if str(value).startswith("slow"):
            self.catalogue.started.set()
            await self.catalogue.release.wait()
            return None
        if value == "away":
            raise ConnectionError("secret-of-the-catalogue")
        return None if value in self.catalogue.flavors else "there is no such flavor"


FLAVOR_CONSTRAINT = (Constraint("custom_constraint", name="acme.flavor"),)


class Region(CustomConstraint):
    """A constraint whose `validate` is not a coroutine function; it can fail, or return an
    awaitable.
    """

    name = "acme.region"

    def validate(self, value: Json, context: ValidationContext) -> Verdict:
        if value == "failing":
            raise RuntimeError("secret-of-the-catalogue")
        return self.late(value) if value == "late" else None

    async def late(self, value: Json) -> str | None:
        return "there is no such region"


class Machine(ResourceType):
    schema = TypeSchema(
        "Acme::Machine",
        properties={
            "flavor": Property(Kind.STRING, constraints=FLAVOR_CONSTRAINT, update_allowed=True),
            "disks": Property(
                Kind.LIST,
                items=Property(
                    Kind.MAP,
                    fields={"flavor": Property(Kind.STRING, constraints=FLAVOR_CONSTRAINT)},
                ),
            ),
            "key": Property(Kind.STRING, constraints=FLAVOR_CONSTRAINT, hidden=True),
        },
    )

    def __init__(self, catalogue: Catalogue) -> None:
        self.flavor = Flavor(catalogue)
        self.constraints = (self.flavor, Region())

    def create(self, call: Call) -> Outcome:
        return Done("machine")

    def update(self, call: Call) -> Outcome:
        return Done("machine")

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        return None if physical_id == "there" else "there is no such machine"


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return {"engine.constraint_timeout": "1s"}


@pytest.fixture(scope="module")
def shared_types() -> Sequence[Machine]:
    return [Machine(Catalogue())]


@pytest.fixture
def catalogue(shared_types: Sequence[Machine]) -> Catalogue:
    (only,) = shared_types
    only.flavor.catalogue = Catalogue()
    return only.flavor.catalogue


@pytest.fixture
def run(in_own_project: Program, catalogue: Catalogue) -> Program:
    return in_own_project


def machine(**properties: Json) -> Json:
    return {"type": "Acme::Machine", "properties": properties}


def template(**sections: Json) -> Json:
    return {"heat_template_version": "2021-04-16", **sections}


async def refused(run: Program, **body: Json) -> str:
    status, response = await run.call("POST", "/stacks", {"stack_name": "s", **body})
    assert status == 400, response
    _, listed = await run.call("GET", "/stacks")
    assert listed["stacks"] == []
    return str(response["error"]["message"])


async def test_all_errors_are_reported_with_their_place_and_nothing_is_stored(
    run: Program, catalogue: Catalogue
) -> None:
    rule = {"custom_constraint": "acme.flavor"}
    errors = await refused(
        run,
        template=template(
            parameters={
                "p": {"type": "string", "constraints": [rule]},
                "l": {
                    "type": "comma_delimited_list",
                    "constraints": [rule | {"description": "flavors of Acme"}],
                },
            },
            resources={
                "a": machine(flavor="huge", key="hush-hush"),
                "b": machine(disks=[{"flavor": "small"}, {"flavor": "odd"}]),
                "c": {"type": "Acme::Machine", "external_id": "gone"},
            },
        ),
        parameters={"p": "tiny", "l": "small,bad"},
    )
    assert errors.splitlines() == [
        "Parameter 'p' is invalid: Error validating value 'tiny': there is no such flavor."
        " Use a value that acme.flavor accepts.",
        "Parameter 'l' is invalid: flavors of Acme. Use a value that acme.flavor accepts.",
        "Property error: : resources.a.properties.flavor: : "
        "Error validating value 'huge': there is no such flavor",
        "Property error: : resources.a.properties.key: : its hidden value: there is no such flavor",
        "Property error: : resources.b.properties.disks[1].flavor: : "
        "Error validating value 'odd': there is no such flavor",
        "resources.c.external_id: Error validating value 'gone': there is no such machine."
        " Use a value that Acme::Machine accepts.",
    ]
    # Each value once, with the project that validates it.
    values = [value for value, _, _ in catalogue.checked]
    assert sorted(values) == ["bad", "huge", "hush-hush", "odd", "small", "tiny"]
    assert {project for _, project, _ in catalogue.checked} == {run.project}


async def test_valid_values_are_accepted_and_unknown_ones_are_not_validated(
    run: Program, catalogue: Catalogue
) -> None:
    resources = {
        "v": {"type": "OS::Heat::Value", "properties": {"value": "huge"}},
        "a": machine(flavor="small"),
        "b": machine(flavor={"get_attr": ["v", "value"]}),
        "c": {"type": "Acme::Machine", "external_id": "there"},
        "d": machine(flavor="", key=None),
    }
    await run.create("s", resources)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert [value for value, _, _ in catalogue.checked] == ["small"]


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("slow", "acme.flavor did not answer within 1 s; send the request again"),
        (
            "away",
            "acme.flavor failed to validate it (see the server's log); send the request again",
        ),
    ],
)
async def test_an_error_during_validation_refuses_the_request(
    run: Program, value: str, part: str
) -> None:
    errors = await refused(run, template=template(resources={"a": machine(flavor=value)}))
    assert part in errors
    assert "secret-of-the-catalogue" not in errors


async def test_updates_dry_runs_and_validate_use_custom_constraints(
    run: Program, catalogue: Catalogue
) -> None:
    await run.create("s", {"a": machine(flavor="small")})
    await run.until_ended("s")
    stack = await run.stack("s")
    bad = {"template": template(resources={"a": machine(flavor="huge")})}
    path = f"/stacks/s/{stack['id']}"
    for method, where, body in (
        ("PUT", path, bad),
        ("PATCH", path, bad),
        ("PUT", f"{path}/preview", bad),
        ("POST", "/stacks/preview", {"stack_name": "t", **bad}),
        ("POST", "/validate", bad),
    ):
        status, response = await run.call(method, where, body)
        assert (status, "no such flavor" in str(response)) == (400, True), (method, where, response)
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    good = {"template": template(resources={"a": machine(flavor="large")})}
    await run.update("s", "PUT", **good)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_no_stack_is_locked_during_external_validation(
    run: Program, catalogue: Catalogue
) -> None:
    """If the values change meanwhile, the update must be sent again."""
    parameter = {"p": {"type": "string", "default": "small"}}
    flavored = {"a": machine(flavor={"get_param": "p"})}
    body = {"template": template(parameters=parameter, resources=flavored)}
    await run.call("POST", "/stacks", {"stack_name": "s", **body})
    await run.until_ended("s")
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}"
    grown = template(parameters=parameter, resources={**flavored, "b": machine(flavor="slow")})
    waits = asyncio.create_task(run.call("PATCH", path, {"template": grown}))
    await catalogue.started.wait()
    status, response = await run.call("PATCH", path, {"parameters": {"p": "large"}})
    assert status == 202, response
    await run.until_ended("s")
    catalogue.release.set()
    status, response = await waits
    assert status == 409, response
    assert "was changed while acme.flavor validated a value" in response["error"]["message"]


async def test_a_missing_parameter_is_not_validated(run: Program, catalogue: Catalogue) -> None:
    rules = [{"custom_constraint": "acme.flavor"}, {"custom_constraint": "timezone"}]
    parameters = {"p": {"type": "string", "constraints": rules}}
    status, response = await run.call(
        "POST", "/validate", {"template": template(parameters=parameters)}
    )
    assert status == 200, response
    assert catalogue.checked == []


async def test_parameters_of_a_template_type_are_validated(
    run: Program, catalogue: Catalogue
) -> None:
    rule = {"custom_constraint": "acme.flavor"}
    nested = template(parameters={"f": {"type": "string", "constraints": [rule]}})
    outer = {"a": {"type": "n.yaml", "properties": {"f": "huge"}}}
    body = {"template": template(resources=outer), "files": {"n.yaml": json.dumps(nested)}}
    status, response = await run.call("POST", "/validate", body)
    assert status == 400, response
    assert "resources.a.properties.f" in response["error"]["message"]
    assert "there is no such flavor" in response["error"]["message"]


async def test_nested_templates_and_groups_are_validated_before_anything_is_stored(
    run: Program, catalogue: Catalogue
) -> None:
    rule = {"custom_constraint": "acme.flavor"}
    inside = template(
        parameters={
            "f": {"type": "string"},
            "own": {"type": "string", "default": "own", "constraints": [rule]},
        },
        resources={"m": machine(flavor={"get_param": "f"})},
    )
    web = {"type": "n.yaml", "properties": {"f": "huge"}}
    late = {"type": "n.yaml", "properties": {"f": {"get_resource": "web"}, "own": "small"}}
    members = {"count": 2, "resource_def": machine(flavor="tiny")}
    outer = {
        "web": web,
        "again": web,
        "late": late,
        "group": {"type": "OS::Heat::ResourceGroup", "properties": members},
    }
    errors = await refused(
        run, template=template(resources=outer), files={"n.yaml": json.dumps(inside)}
    )
    assert errors.splitlines() == [
        "resources.web<n.yaml>: Parameter 'own' is invalid: Error validating value 'own': "
        "there is no such flavor. Use a value that acme.flavor accepts.",
        "Property error: : resources.web<n.yaml>.resources.m.properties.flavor: : "
        "Error validating value 'huge': there is no such flavor",
        "Property error: : resources.group.properties.resource_def.properties.flavor: : "
        "Error validating value 'tiny': there is no such flavor",
    ]
    assert {value for value, _, _ in catalogue.checked} == {"own", "huge", "small", "tiny"}


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (
            "failing",
            "acme.region failed to validate it (see the server's log); send the request again",
        ),
        ("late", "there is no such region"),
    ],
)
async def test_a_synchronous_constraint_may_fail_or_return_an_awaitable(
    run: Program, value: str, part: str
) -> None:
    parameter = {"type": "string", "constraints": [{"custom_constraint": "acme.region"}]}
    body = {"template": template(parameters={"p": parameter}), "parameters": {"p": value}}
    errors = await refused(run, **body)
    assert part in errors
    assert "secret-of-the-catalogue" not in errors
    good = body | {"parameters": {"p": "north"}}
    assert (await run.call("POST", "/stacks", {"stack_name": "s", **good}))[0] == 201
    await run.until_ended("s")
    stack = await run.stack("s")
    status, answer = await run.call("PUT", f"/stacks/s/{stack['id']}", body)
    assert (status, part in answer["error"]["message"]) == (400, True)


async def test_the_validation_of_many_values_has_one_time_limit(
    run: Program, catalogue: Catalogue
) -> None:
    """A hundred values, each of which would take a second."""
    disks = [{"flavor": "slow"} for _ in range(1)]
    many = {f"m{n}": machine(flavor=f"slow{n}", disks=disks) for n in range(100)}
    errors = await refused(run, template=template(resources=many))
    assert errors.count("acme.flavor did not answer") >= 100
    assert len(catalogue.checked) <= 16
