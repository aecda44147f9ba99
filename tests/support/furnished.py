"""A project with one of each thing that the API knows, and what must not be told of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hub.api.openapi import plain_path
from hub.api.parts import Route
from hub.dashboard.files import all_files
from tests.support.program import Http, Json, resource, template

#: Of hidden parameters, secrets and passwords; in no answer that refuses something.
SECRET = "swordfish-7431"
_HELD = {"hooks": [{"at": "b", "on": ["pre-create"], "timeout": "10h"}]}
_PARAMETER = re.compile(r"\{(\w+)\}")
#: Words of paths that stand for different things, by the beginning of the path.
_SPECIAL: Mapping[str, Mapping[str, str]] = {
    "/schemas/": {"type": "headgate.hook.waiting"},
    "/{version}": {"version": "v2"},
    "/v1/{project}/template_versions/": {"version": "heat_template_version.2018-08-31"},
    "/v1/{project}/stacks/{name}/{id}/snapshots": {"name": "done", "id": "done"},
    "/v1/{project}/stacks/{name}/{id}/resources/{resource}/events": {"name": "done", "id": "done"},
}


@dataclass(frozen=True)
class Furnished:
    """A stack that waits (`held`), one that is done (`done`), and what else there is.

    said: what stands in paths, by name; `done` is the id of the stack that is done.
    """

    said: Mapping[str, str]

    def path(self, route: Route, **other: str) -> str:
        """The route's path to what there is; other: said instead, by the names of the path."""
        plain = plain_path(route.path)
        values = self.names(plain) | other
        return _PARAMETER.sub(lambda found: values[found[1]], plain)

    def names(self, path: str) -> dict[str, str]:
        """What stands for the names of a path as the document has it."""
        values = dict(self.said)
        for beginning, special in _SPECIAL.items():
            if path.startswith(beginning):
                values |= special
        if values["id"] == "done":
            values["id"] = self.said["done"]
        return {name: values[name] for name in _PARAMETER.findall(path)}


def names_in(route: Route) -> list[str]:
    """The names of the route's path."""
    return _PARAMETER.findall(plain_path(route.path))


async def furnished(run: Http) -> Furnished:
    done = await run.create("done", {"a": resource()}, **_with_a_secret({"a": resource()}))
    assert await run.until_ended("done") == "CREATE_COMPLETE"
    made = await run.at("POST", "done", "/snapshots", {"name": "kept"})
    assert await run.until_ended("done") == "SNAPSHOT_COMPLETE"
    events = (await run.at("GET", "done", "/resources/a/events"))["events"]
    held = {"a": resource(), "b": resource(depends_on="a")}
    stack = await run.create("held", held, environment=_HELD, **_with_a_secret(held))
    (hook,) = await run.waiting("held")
    set_later = await run.at("POST", "held", "/breakpoints", {"breakpoints": ["b:post-create"]})
    to = {"target": "http://127.0.0.1:9/", "stacks": ["none"]}
    config = (await _posted(run, "/software_configs", {"name": "c", "config": SECRET}))[
        "software_config"
    ]
    deployed = {"config_id": config["id"], "server_id": "srv", "input_values": {"k": SECRET}}
    deployment = await _posted(run, "/software_deployments", deployed)
    token = await _posted(run, "/tokens", {"name": "ci", "roles": ["reader"]})
    return Furnished({
        "project": run.project, "name": "held", "id": stack, "done": done, "hook": hook["id"],
        "stack": stack, "digest": all_files().digest, "path": "main.js",
        "resource": "a", "key": "size", "snapshot": made["id"], "event": events[0]["id"],
        "subscription": (await _posted(run, "/subscriptions", to))["id"], "token": token["id"],
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


async def _posted(run: Http, path: str, body: Json) -> Json:
    status, said = await run.call("POST", path, body)
    assert status < 300, said
    return said
