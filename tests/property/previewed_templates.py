"""Random templates and requests of which a preview must tell what the update does."""

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.support.program import Json

NAMES, KEYS = ("a", "b", "c", "d"), ("x", "y", "z")
#: The names of groups whose members have random names.
RANDOM_NAMES = ("scaled", "instances")
GROUPS = ("g", "deep", "chain", *RANDOM_NAMES)
#: What the values of the hidden parameter begin with.
SECRET = "hidden-"
INSTANCE = "instance.yaml"
#: As many members as possible stay in service, so that a group may grow meanwhile.
ROLLING = (
    {"max_batch_size": 1}, {"max_batch_size": 2, "min_in_service": 2}, {"max_batch_size": 3},
)  # fmt: skip


class Templates:
    """Makes random templates."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def value(self, before: Sequence[str]) -> Json:
        """before: resources that it may read."""
        constants: list[Json] = ["1", "2", "${size}", {"if": ["on", "1", "off"]}]
        constants += [{"get_param": "secret"}] if self.chance(30) else []
        if not before or self.chance(50):
            return self.random.choice(constants)
        name = self.random.choice(before)
        if name in GROUPS:
            return {"list_join": [",", self.of_group(name)]}
        read = {"get_attr": [name, "output"]}
        reference = {"get_resource": name}
        text = {"str_replace": {"template": "v-X", "params": {"X": read}}}
        return self.random.choice([read, reference, text])

    def of_group(self, name: str) -> Json:
        """A list."""
        match name:
            case "scaled":
                return {"get_attr": [name, self.random.choice(["refs", "outputs_list"]), "output"]}
            case "instances":
                return [{"get_attr": [name, "InstanceList"]}]
            case "chain":
                return {"get_attr": [name, "refs"]}
        return {"get_attr": [name, *self.random.choice([["refs"], ["output"]])]}

    def thing(self, before: Sequence[str] = ()) -> Json:
        properties: dict[str, Json] = {"value": self.value(before)}
        if self.chance(20):
            properties["update_replace"] = True
        if self.chance(20):
            properties["update_replace_value"] = self.value(before)
        if self.chance(7):
            properties["fail"] = True
        one = {"type": "OS::Heat::TestResource", "properties": properties}
        if self.chance(20):
            one["deletion_policy"] = self.random.choice(["retain", "snapshot", "delete"])
        return one

    def resource(self, before: Sequence[str]) -> Json:
        one = self.thing(before)
        lifecycle: dict[str, Json] = {}
        if self.chance(15):
            lifecycle["ignore_changes"] = self.random.choice([["value"], "all"])
        if self.chance(25):
            things = [one for one in before if one not in GROUPS]
            other = self.random.choice(things) if things else "value"
            causes: list[Json] = ["value", other, {"get_param": "size"}]
            causes += [{"get_attr": [other, "output"]}] if things else []
            lifecycle["replace_when"] = [self.random.choice(causes)]
        if lifecycle:
            one["lifecycle"] = lifecycle
        if self.chance(10):
            checked = {"not": {"equals": [self.value(before), "2"]}}
            one["preconditions"] = [{"assert": checked, "message": "it is 2"}]
        if before and self.chance(20):
            one["depends_on"] = self.random.choice(before)
        return one

    def loop(self, before: Sequence[str]) -> Json:
        keys = [key for key in KEYS if self.chance(60)]
        values = {key: self.random.choice("12") for key in keys}
        one = self.thing(before)
        if self.chance(50):
            one["properties"]["value"] = "${each.value}"
        loops: list[Json] = [values, keys, {"get_param": "keys"}]
        loops += [{key: self.value(before) for key in keys}]
        return one | {"for_each": self.random.choice(loops)}

    def group(self, before: Sequence[str]) -> Json:
        member = self.thing(before)
        member["properties"]["value"] = self.random.choice(["m%index%", self.value(before)])
        count = self.random.choice([0, 1, 2, 3, {"get_param": "size"}])
        properties: dict[str, Json] = {"count": count, "resource_def": member}
        if self.chance(50):
            listed = self.random.sample("0123", self.random.randint(0, 2))
            properties["removal_policies"] = [{"resource_list": listed}]
        if self.chance(30):
            properties["removal_policies_mode"] = "update"
        one = {"type": "OS::Heat::ResourceGroup", "properties": properties}
        if self.chance(50):
            one["update_policy"] = {"rolling_update": self.random.choice(ROLLING)}
        return one

    def nested(self, before: Sequence[str]) -> Json:
        return {"type": "in.yaml", "properties": {"value": self.value(before)}}

    def nested_members(self, before: Sequence[str]) -> Json:
        properties = {"count": self.random.randint(0, 2), "resource_def": self.nested(before)}
        return {"type": "OS::Heat::ResourceGroup", "properties": properties}

    def chain(self, before: Sequence[str]) -> Json:
        types = ["OS::Heat::TestResource", "in.yaml", "OS::Heat::Value"]
        properties: dict[str, Json] = {
            "resources": self.random.choices(types, k=self.random.randint(0, 3)),
            "resource_properties": {"value": self.value(before if self.chance(30) else ())},
        }
        if self.chance(30):
            properties["concurrent"] = True
        return {"type": "OS::Heat::ResourceChain", "properties": properties}

    def scaled(self, before: Sequence[str]) -> Json:
        properties: dict[str, Json] = {
            "min_size": self.random.randint(0, 1),
            "max_size": self.random.randint(2, 3),
            "resource": self.random.choice([self.thing, self.nested])(before),
        }
        if self.chance(60):
            properties["desired_capacity"] = self.random.choice([1, 2, {"get_param": "size"}])
        if self.chance(70):
            properties["rolling_updates"] = self.random.choice(ROLLING)
        return {"type": "OS::Heat::AutoScalingGroup", "properties": properties}

    def launch(self, before: Sequence[str]) -> Json:
        properties = {"ImageId": self.value(before), "InstanceType": self.random.choice("12")}
        return {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": properties}

    def instances(self, before: Sequence[str]) -> Json:
        properties = {
            "AvailabilityZones": ["nova"],
            "LaunchConfigurationName": {"get_resource": "launch"},
            "Size": self.random.choice([0, 1, 2, {"get_param": "size"}]),
        }
        one: Json = {"type": "OS::Heat::InstanceGroup", "properties": properties}
        if self.chance(60):
            policy = {"MaxBatchSize": self.random.randint(1, 2)}
            policy["MinInstancesInService"] = self.random.randint(0, 2)
            one["update_policy"] = {"RollingUpdate": policy}
        return one

    def files(self) -> dict[str, str]:
        """The nested templates."""
        inside = {name: self.thing() for name in ("i", "j") if name == "i" or self.chance(50)}
        for one in inside.values():
            one["properties"]["value"] = self.random.choice(["1", {"get_param": "value"}])
        if self.chance(25):
            inside["j"] = self.thing() | {"condition": {"equals": [{"get_param": "value"}, "1"]}}
        parameters: Json = {"value": {"type": "string"}, "size": {"type": "number", "default": 1}}
        parameters["secret"] = {"type": "string", "default": f"{SECRET}0", "hidden": True}
        nested = {
            "heat_template_version": "headgate",
            "parameters": parameters,
            "conditions": {"on": True},
            "resources": inside,
            "outputs": {"output": {"value": {"get_attr": ["i", "output"]}}},
        }
        machine: Json = {"type": "OS::Heat::TestResource"}
        machine["properties"] = {
            "value": {"get_param": "ImageId"}, "update_replace_value": {"get_param": "InstanceType"}
        }  # fmt: skip
        instance = {
            "heat_template_version": "headgate",
            "parameters": {"ImageId": {"type": "string"}, "InstanceType": {"type": "string"}},
            "resources": {"i": machine},
        }
        return {"in.yaml": json.dumps(nested), INSTANCE: json.dumps(instance)}

    def parameters(self) -> dict[str, Json]:
        keys = ",".join(key for key in KEYS if self.chance(60)) or "x"
        return {
            "size": {"type": "number", "default": self.random.randint(1, 2)},
            "flag": {"type": "boolean", "default": self.chance(70)},
            "keys": {"type": "comma_delimited_list", "default": keys},
            "secret": {"type": "string", "hidden": True, "default": SECRET + self.digit()},
        }

    def digit(self) -> str:
        return self.random.choice("12")

    def values(self) -> dict[str, Json]:
        """Values of some parameters."""
        known = {name: one["default"] for name, one in self.parameters().items()}
        return {name: value for name, value in known.items() if self.chance(40)}

    def template(self) -> Json:
        makers = {name: self.resource for name in NAMES} | {
            "web": self.loop, "g": self.group, "n": self.nested, "deep": self.nested_members,
            "chain": self.chain, "scaled": self.scaled, "launch": self.launch,
        }  # fmt: skip
        chosen = [name for name in makers if self.chance(55 if name in NAMES else 25)]
        self.random.shuffle(chosen)
        resources: dict[str, Json] = {}
        for name in chosen:
            readable = [one for one in resources if one in (*NAMES, "n", *GROUPS)]
            resources[name] = makers[name](readable)
            if name == "launch":
                resources["instances"] = self.instances(readable)
            elif name in NAMES and self.chance(15):
                resources[name]["condition"] = "on"
        return {
            "heat_template_version": "headgate",
            "parameters": self.parameters(),
            "conditions": {"on": {"get_param": "flag"}},
            "resources": _consistent(resources),
        }

    def changed(self, template: Json) -> Json:
        """A template of which some resources differ, with a move if one can have been moved."""
        other = self.template()
        resources = dict(template["resources"])
        for name in {**resources, **other["resources"]}:
            if self.chance(40):
                resources.pop(name, None)
                if name in other["resources"]:
                    resources[name] = other["resources"][name]
        resources = _consistent(resources)
        new = {**template, "resources": resources}
        new.pop("moved", None)
        if self.chance(40):
            new["parameters"] = other["parameters"]
        gone = [one for one in NAMES if one in template["resources"] and one not in resources]
        added = [one for one in NAMES if one in resources and one not in template["resources"]]
        if gone and added:
            new["moved"] = [{"from": gone[0], "to": added[0]}]
        return new

    def request(self, template: Json, files: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """The method and the body of an update. template, files: the new ones."""
        body = {**whole_body(template, files), "parameters": self.values()}
        method = "PUT"
        if self.chance(40):
            method = "PATCH"
            names = [name for name in template["parameters"] if self.chance(20)]
            body["clear_parameters"] = [one for one in names if one not in body["parameters"]]
            if self.chance(40):
                del body["template"], body["files"], body["environment"]
            if self.chance(25):
                globs = [name for name in template["resources"] if self.chance(40)] or ["*"]
                body[self.random.choice(["only", "except"])] = globs
        if self.chance(20) and template["resources"]:
            at = self.random.choice([*template["resources"]])
            if self.chance(30):
                at += "/*"
            points = ["pre-create", "pre-update", "post-update", "pre-delete", "pre-replace"]
            on = self.random.sample(points, 2)
            mode = self.random.choice(["stop", "wait"])
            body["hooks"] = {"add": [{"at": at, "on": on, "mode": mode}]}
        return method, body


def _consistent(resources: Mapping[str, Json]) -> dict[str, Json]:
    """Without resources that read one that does not exist. Those that read one with a condition
    get the same condition."""
    known = {*NAMES, "web", "n", "launch", *GROUPS}
    reads = {
        name: {one for one in known - {name} if f'"{one}"' in json.dumps(body)}
        for name, body in resources.items()
    }
    kept = dict(resources)
    while gone := [name for name in kept if reads[name] - kept.keys()]:
        for name in gone:
            del kept[name]
    while True:
        conditions = {name: body.get("condition") for name, body in kept.items()}
        missing = {
            name: conditions[other]
            for name in kept
            for other in reads[name]
            if conditions[other] is not None and conditions[name] is None
        }
        if not missing:
            return kept
        kept |= {name: kept[name] | {"condition": one} for name, one in missing.items()}


def whole_body(template: Json, files: Mapping[str, str]) -> dict[str, Any]:
    environment = {"resource_registry": {"AWS::EC2::Instance": INSTANCE}}
    return {"template": template, "files": files, "environment": environment}
