"""A project with one object of each kind in the API, and a secret that responses must
not reveal.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hub.api.dashboard import all_files
from hub.api.openapi import plain_path
from hub.api.routes import Route
from tests.support.program import Http, Json, resource, template

#: The value of hidden parameters, secrets and passwords; no error response may contain it.
SECRET = "swordfish-7431"
_WAITING_ENVIRONMENT = {"hooks": [{"at": "b", "on": ["pre-create"], "timeout": "10h"}]}
_PARAMETER = re.compile(r"\{(\w+)\}")
#: Path parameters with another meaning, by the beginning of the path.
_SPECIAL: Mapping[str, Mapping[str, str]] = {
    "/schemas/": {"type": "headgate.hook.waiting"},
    "/{version}": {"version": "v2"},
    "/v1/{project}/template_versions/": {"version": "heat_template_version.2018-08-31"},
    "/v1/{project}/stacks/{name}/{id}/snapshots": {"name": "done", "id": "done"},
    "/v1/{project}/stacks/{name}/{id}/resources/{resource}/events": {"name": "done", "id": "done"},
}


@dataclass(frozen=True)
class PopulatedProject:
    """A stack that waits at a hook (`held`), a completed one (`done`), and objects of all other
    kinds.

    path_values: by the names of path parameters; `done` is the ID of the completed stack.
    """

    path_values: Mapping[str, str]

    def path(self, route: Route, **other: str) -> str:
        """The path of a route to existing objects. other: values that replace them, by name."""
        plain = plain_path(route.path)
        values = self.parameters(plain) | other
        return _PARAMETER.sub(lambda found: values[found[1]], plain)

    def parameters(self, path: str) -> dict[str, str]:
        """The values of the parameters in a path of the OpenAPI document."""
        values = dict(self.path_values)
        for beginning, special in _SPECIAL.items():
            if path.startswith(beginning):
                values |= special
        if values["id"] == "done":
            values["id"] = self.path_values["done"]
        return {name: values[name] for name in _PARAMETER.findall(path)}


def path_parameters(route: Route) -> list[str]:
    """The names of the path parameters of the route."""
    return _PARAMETER.findall(plain_path(route.path))


async def populate_project(run: Http) -> PopulatedProject:
    done = await run.create("done", {"a": resource()}, **_with_a_secret({"a": resource()}))
    assert await run.until_ended("done") == "CREATE_COMPLETE"
    snapshot = await run.stack_request("POST", "done", "/snapshots", {"name": "kept"})
    assert await run.until_ended("done") == "SNAPSHOT_COMPLETE"
    events = (await run.stack_request("GET", "done", "/resources/a/events"))["events"]
    held = {"a": resource(), "b": resource(depends_on="a")}
    stack = await run.create("held", held, environment=_WAITING_ENVIRONMENT, **_with_a_secret(held))
    (hook,) = await run.waiting_hooks("held")
    set_later = await run.stack_request(
        "POST", "held", "/breakpoints", {"breakpoints": ["b:post-create"]}
    )
    to = {"target": "http://127.0.0.1:9/", "stacks": ["none"]}
    config = (await _post(run, "/software_configs", {"name": "c", "config": SECRET}))[
        "software_config"
    ]
    deployed = {"config_id": config["id"], "server_id": "srv", "input_values": {"k": SECRET}}
    deployment = await _post(run, "/software_deployments", deployed)
    token = await _post(run, "/tokens", {"name": "ci", "roles": ["reader"]})
    return PopulatedProject({
        "project": run.project, "name": "held", "id": stack, "done": done, "hook": hook["id"],
        "stack": stack, "digest": all_files().digest, "path": "main.js",
        "resource": "a", "key": "size", "snapshot": snapshot["id"], "event": events[0]["id"],
        "subscription": (await _post(run, "/subscriptions", to))["id"], "token": token["id"],
        "config": config["id"], "deployment": deployment["software_deployment"]["id"],
        "server": "srv", "rest": "any", "type": "OS::Heat::TestResource", "version": "1",
        "breakpoint": set_later["breakpoints"][0]["id"],
    })  # fmt: skip


def _with_a_secret(resources: Json) -> Json:
    key = {"type": "string", "hidden": True}
    outputs = {"size": {"value": {"get_attr": ["a", "output"]}}}
    return {
        "template": template(resources, parameters={"key": key}, outputs=outputs),
        "parameters": {"key": SECRET},
    }


async def _post(run: Http, path: str, body: Json) -> Json:
    status, response = await run.call("POST", path, body)
    assert status < 300, response
    return response
