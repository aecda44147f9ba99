"""Software configs as resources: kept where the API keeps them, so that both see each other's.

A config never changes: any other property makes a new one, and what reads it moves over.
"""

from abc import abstractmethod
from collections.abc import Mapping

import yaml

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType
from engine.types.software.schema import (
    DEFAULT_ACTIONS,
    GROUP,
    INPUTS,
    OPTIONS,
    OUTPUTS,
    check_lists,
    listed,
)
from engine.types.software.software_store import UNGROUPED, NewConfig, SoftwareStore
from engine.words import Json

#: The group of a config that is made of several, each for actions of its own.
COMPONENT = "component"


class Config(ResourceType):
    """What all kinds of configs have in common; each says what is to be kept."""

    uses_credential = False

    def __init__(self, software_store: SoftwareStore) -> None:
        self._software_store = software_store

    @abstractmethod
    async def written(self, call: Call) -> NewConfig | Failed:
        """What is to be kept."""

    def attributes_of(self, kept: NewConfig) -> dict[str, Json]:
        return {"config": kept.config}

    async def create(self, call: Call) -> Outcome:
        new = await self.written(call)
        if isinstance(new, Failed):
            return new
        await self._software_store.store_config(call.project, call.operation_key, new)
        return Done(str(call.operation_key), self.attributes_of(new))

    async def delete(self, call: Call) -> Outcome:
        if call.physical_id is not None:
            await self._software_store.delete_config(call.project, call.physical_id)
        return Done(None)

    async def check(self, call: Call) -> Outcome:
        kept = await self._software_store.config(call.project, call.physical_id or "")
        if kept is None:
            return Failed(no_config(call.physical_id or ""), call.physical_id)
        return Done(call.physical_id, self.attributes_of(kept))

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_lists(properties, place, findings)


def no_config(config_id: str) -> str:
    return f"Software config with id {config_id} not found"


def _as_it_is(call: Call, config: Json, group: str) -> NewConfig:
    said = call.properties
    return NewConfig(
        call.own_name,
        group,
        config,
        listed(said.get("inputs")),
        listed(said.get("outputs")),
        said.get("options") or {},
    )


class SoftwareConfig(Config):
    schema = TypeSchema(
        "OS::Heat::SoftwareConfig",
        description="A script or manifest with typed inputs and outputs. Any change makes another.",
        properties={
            "group": GROUP,
            "config": Property(Kind.STRING, "The script or manifest."),
            "options": OPTIONS,
            "inputs": INPUTS,
            "outputs": OUTPUTS,
        },
        attributes={"config": Attribute(Kind.STRING, "The script or manifest.")},
    )

    async def written(self, call: Call) -> NewConfig:
        said = call.properties
        return _as_it_is(call, said.get("config") or "", said.get("group") or UNGROUPED)


class StructuredConfig(Config):
    schema = TypeSchema(
        "OS::Heat::StructuredConfig",
        description="A software config that is a map, for tools that read JSON or YAML.",
        properties={
            "group": GROUP,
            "config": Property(Kind.MAP, "The map."),
            "options": OPTIONS,
            "inputs": INPUTS,
            "outputs": OUTPUTS,
        },
        attributes={"config": Attribute(Kind.MAP, "The map.")},
    )

    async def written(self, call: Call) -> NewConfig:
        said = call.properties
        return _as_it_is(call, said.get("config") or {}, said.get("group") or UNGROUPED)


class CloudConfig(Config):
    schema = TypeSchema(
        "OS::Heat::CloudConfig",
        description="A cloud-config of cloud-init, written from a map.",
        properties={"cloud_config": Property(Kind.MAP, "What cloud-init is to do.")},
        attributes={"config": Attribute(Kind.STRING, "The cloud-config, as text.")},
    )

    async def written(self, call: Call) -> NewConfig:
        document = yaml.dump(
            call.properties.get("cloud_config") or {}, Dumper=yaml.CSafeDumper, allow_unicode=True
        )
        return NewConfig(call.own_name, UNGROUPED, f"#cloud-config\n{document}")


class SoftwareComponent(Config):
    schema = TypeSchema(
        "OS::Heat::SoftwareComponent",
        description="Several configs of one component, each for certain actions.",
        properties={
            "configs": Property(
                Kind.LIST,
                "The configs, and when each is used.",
                required=True,
                constraints=(Constraint("length", min=1),),
                items=Property(
                    Kind.MAP,
                    fields={
                        "actions": Property(
                            Kind.LIST,
                            "Actions that it is used in.",
                            default=list(DEFAULT_ACTIONS),
                            constraints=(Constraint("length", min=1),),
                            items=Property(Kind.STRING),
                        ),
                        "config": Property(Kind.STRING, "The script or manifest."),
                        "tool": Property(
                            Kind.STRING, "The tool on the server that uses it.", required=True
                        ),
                    },
                ),
            ),
            "inputs": INPUTS,
            "outputs": OUTPUTS,
            "options": OPTIONS,
        },
        attributes={
            "config": Attribute(Kind.MAP, "What is kept: {configs: [...]}."),
            "configs": Attribute(Kind.LIST, "The configs, and when each is used."),
        },
    )

    async def written(self, call: Call) -> NewConfig:
        return _as_it_is(call, {"configs": call.properties["configs"]}, COMPONENT)

    def attributes_of(self, kept: NewConfig) -> dict[str, Json]:
        configs = kept.config.get("configs") if isinstance(kept.config, dict) else None
        return {"config": kept.config, "configs": configs}

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_lists(properties, place, findings)
        seen: set[str] = set()
        for number, one in enumerate(properties.get("configs") or ()):
            said = one.get("actions") if isinstance(one, dict) else None
            actions = DEFAULT_ACTIONS if said is None else said
            twice = sorted({str(action) for action in actions if action in seen})
            if twice:
                findings.add(
                    f"{place}.configs[{number}].actions",
                    "Defining more than one configuration for the same action in"
                    f" SoftwareComponent is not allowed: {', '.join(twice)}",
                    "Name each action in one config only.",
                )
            seen.update(str(action) for action in actions)
