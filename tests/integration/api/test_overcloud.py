"""A stack tree of the size and shape of TripleO's overcloud is accepted with the default settings:
149 files, 773 resources, 6 levels of nested stacks, in a request of 1.71 MB."""

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from hub.settings.settings import load_settings
from tests.support.changes import error_text
from tests.support.program import program

Json = Any
ROLES = ("Controller", "Compute", "BlockStorage", "ObjectStorage", "CephStorage")
#: Services of each role; each is a file of its own.
SERVICES = 22
FILES, RESOURCES, LEVELS, REQUEST_BYTES = 149, 773, 6, 1_710_000
VERSION = "wallaby"


def template(resources: Json, outputs: Json = None, parameters: Json = None) -> Json:
    return {
        "heat_template_version": VERSION,
        "parameters": parameters or {},
        "resources": resources,
        "outputs": outputs or {},
    }


def value(of: Json) -> Json:
    return {"type": "OS::Heat::Value", "properties": {"type": "json", "value": of}}


def service(role: str, number: int) -> Json:
    """A template of a service: its settings are long, and it contains another nested stack."""
    settings = {
        f"{role}::service{number}::option_{n}": {"get_param": "ServiceNetMap"} if n % 25 == 0
        else f"the value of option {n} of service {number} of the role {role}"
        for n in range(130)
    }  # fmt: skip
    return template(
        {
            "Base": {
                "type": "OS::Overcloud::ServiceBase",
                "properties": {"ServiceName": f"service{number}"},
            },
            "Settings": value(settings),
        },
        {"role_data": {"value": {"map_merge": [
            {"get_attr": ["Settings", "value"]}, {"base": {"get_attr": ["Base", "data"]}},
        ]}}},
        {"ServiceNetMap": {"type": "json"}, "RoleName": {"type": "string"}},
    )  # fmt: skip


def role_chain(role: str) -> Json:
    """The services of a role, as a chain whose members are templates."""
    return template(
        {
            "Chain": {
                "type": "OS::Heat::ResourceChain",
                "properties": {
                    "resources": {"get_param": "Services"},
                    "concurrent": True,
                    "resource_properties": {
                        "ServiceNetMap": {"get_param": "ServiceNetMap"},
                        "RoleName": role,
                    },
                },
            }
        },
        {"role_data": {"value": {"get_attr": ["Chain", "role_data"]}}},
        {"Services": {"type": "comma_delimited_list"}, "ServiceNetMap": {"type": "json"}},
    )


def node_of(role: str) -> Json:
    """A node of a role."""
    ports = {
        f"{network}Port": {
            "type": f"OS::Overcloud::{role}::Ports::{network}Port",
            "properties": {"Network": network},
        }
        for network in ("Storage", "Internal", "Tenant")
    }
    return template(
        {
            **ports,
            "Config": value({"role": role, "index": {"get_param": "Index"}}),
            "Ready": {"type": "OS::Overcloud::Deployment", "depends_on": "Config"},
        },
        {"hosts": {"value": {"get_attr": ["StoragePort", "address"]}}},
        {"Index": {"type": "string"}},
    )


def files() -> dict[str, Json]:
    found = {f"{role}-service{n}.yaml": service(role, n) for role in ROLES for n in range(SERVICES)}
    found |= {f"{role}-chain.yaml": role_chain(role) for role in ROLES}
    found |= {f"{role}-node.yaml": node_of(role) for role in ROLES}
    found["base.yaml"] = template(
        {"Client": {"type": "OS::Overcloud::Client"}},
        {"data": {"value": {"get_attr": ["Client", "data"]}}},
        {"ServiceName": {"type": "string"}},
    )
    found["client.yaml"] = template(
        {"Settings": {"type": "OS::Overcloud::ClientSettings"}},
        {"data": {"value": {"get_attr": ["Settings", "data"]}}},
    )
    found["settings.yaml"] = template(
        {"Value": value({"port": 3306})}, {"data": {"value": {"get_attr": ["Value", "value"]}}}
    )
    found["port.yaml"] = template(
        {"Address": value({"address": {"get_param": "Network"}})},
        {"address": {"value": {"get_attr": ["Address", "value"]}}},
        {"Network": {"type": "string"}},
    )
    found |= {f"script{n}.sh": "echo ready\n" * 90 for n in range(FILES - len(found))}
    return found


def overcloud(found: Mapping[str, Json]) -> Json:
    resources: dict[str, Json] = {"ServiceNetMap": value({"a": "internal"})}
    for role in ROLES:
        resources[f"{role}Services"] = {
            "type": f"OS::Overcloud::{role}Services",
            "properties": {
                "Services": [f"{role}-service{n}.yaml" for n in range(SERVICES)],
                "ServiceNetMap": {"get_attr": ["ServiceNetMap", "value"]},
            },
        }
        resources[role] = {
            "type": "OS::Heat::ResourceGroup",
            "depends_on": f"{role}Services",
            "properties": {
                "count": 1,
                "resource_def": {
                    "type": f"OS::Overcloud::{role}", "properties": {"Index": "%index%"},
                },
            },
        }  # fmt: skip
    scripts = [name for name in found if name.endswith(".sh")]
    resources["Scripts"] = value({name: {"get_file": name} for name in scripts})
    more = RESOURCES - RESOURCES_BELOW - len(resources)
    resources |= {
        f"Config{n}": value({"text": f"a part of the configuration with the number {n}. " * 4})
        for n in range(more)
    }
    return template(resources)


#: A service has 2 resources, and 3 in its nested stacks. A chain is one resource, and has a member
#: for each service. A node is one, has 5, and 3 more in its nested stacks.
RESOURCES_BELOW = len(ROLES) * (1 + SERVICES * (1 + 5) + 1 + 5 + 3)


def registry() -> Json:
    mapped = {
        "OS::Overcloud::ServiceBase": "base.yaml",
        "OS::Overcloud::Client": "client.yaml",
        "OS::Overcloud::ClientSettings": "settings.yaml",
        "OS::Overcloud::Deployment": "OS::Heat::None",
    }
    for role in ROLES:
        mapped[f"OS::Overcloud::{role}"] = f"{role}-node.yaml"
        mapped[f"OS::Overcloud::{role}Services"] = f"{role}-chain.yaml"
        mapped |= {
            f"OS::Overcloud::{role}::Ports::{network}Port": "port.yaml"
            for network in ("Storage", "Internal", "Tenant")
        }
        mapped |= {f"OS::Overcloud::{role}::Hooks::Step{n}": "OS::Heat::None" for n in range(70)}
    return {"resource_registry": mapped}


def request_body() -> bytes:
    found = files()
    body = {
        "stack_name": "overcloud",
        "template": overcloud(found),
        "environment": registry(),
        "files": {
            name: text if isinstance(text, str) else json.dumps(text, indent=1)
            for name, text in found.items()
        },
    }
    assert len(found) == FILES
    return json.dumps(body).encode()


def levels_of(preview: Json, level: int = 0) -> Iterator[int]:
    """The level of each resource of a preview; a list stands for the owner of a nested stack."""
    for one in preview:
        yield level
        if isinstance(one, list):
            yield from levels_of(one, level + 1)


def test_the_defaults_are_those_that_the_overcloud_needs() -> None:
    settings = load_settings(None, {}, environment={})
    assert settings.language.nesting_depth == LEVELS + 1
    assert settings.server.max_body == 2_097_152


async def test_an_overcloud_is_accepted_with_the_default_settings(database_url: str) -> None:
    body = request_body()
    assert len(body) >= REQUEST_BYTES
    async with program(database_url) as run:
        status, response = await run.call("POST", "/stacks/preview", data=io.BytesIO(body))
        assert status == 200, error_text(response["error"])
        levels = [*levels_of(response["stack"]["resources"])]
        assert (len(levels), max(levels)) == (RESOURCES, LEVELS)


async def test_a_level_less_is_too_few_for_the_overcloud(database_url: str) -> None:
    settings = {"language.nesting_depth": LEVELS - 1}
    async with program(database_url, settings) as run:
        status, response = await run.call(
            "POST", "/stacks/preview", data=io.BytesIO(request_body())
        )
        assert status == 400
        assert "[language] nesting_depth" in error_text(response["error"])


async def test_as_many_resources_as_the_quota_allows_fit_into_a_template(
    database_url: str,
) -> None:
    most = load_settings(None, {}, environment={}).quotas.resources_per_stack
    assert most == 10_000
    async with program(database_url) as run:
        for count, expected in ((most, 200), (most + 1, 400)):
            lines = "".join(f" r{n}: {{type: OS::Heat::RandomString}}\n" for n in range(count))
            text = f"heat_template_version: {VERSION}\nresources:\n{lines}"
            status, response = await run.call("POST", "/validate", {"template": text})
            assert status == expected, response
            assert status == 200 or "resources_per_stack" in error_text(response["error"])
