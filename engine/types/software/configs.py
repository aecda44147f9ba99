"""Software configs as resources. They are stored with the configs that the API creates.

A config is immutable: a change of any property creates a new one.
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
    without_nulls,
)
from engine.types.software.software_store import UNGROUPED, NewConfig, SoftwareStore
from engine.words import Json

#: The group of a config with several parts, each for certain actions.
COMPONENT = "component"


class Config(ResourceType):
    """The base class of configs."""

    uses_credential = False

    def __init__(self, software_store: SoftwareStore) -> None:
        self._software_store = software_store

    @abstractmethod
    async def build(self, call: Call) -> NewConfig | Failed:
        """The config to store, or Failed."""

    def attributes_of(self, config: NewConfig) -> dict[str, Json]:
        return {"config": config.config}

    async def create(self, call: Call) -> Outcome:
        new = await self.build(call)
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
            reason = no_config(call.physical_id or "")
            return Failed(reason, call.physical_id, public_reason=NO_CONFIG)
        return Done(call.physical_id, self.attributes_of(kept))

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_lists(properties, place, findings)


#: The public reason for `no_config`.
NO_CONFIG = "Software config not found"


def no_config(config_id: str) -> str:
    return f"Software config with id {config_id} not found"


def _new_config(call: Call, config: Json, group: str) -> NewConfig:
    properties = call.properties
    return NewConfig(
        call.own_name,
        group,
        config,
        without_nulls(properties.get("inputs")),
        without_nulls(properties.get("outputs")),
        properties.get("options") or {},
    )


def _schema(name: str, description: str, kind: Kind, content: str) -> TypeSchema:
    return TypeSchema(
        name,
        description=description,
        properties={
            "group": GROUP,
            "config": Property(kind, content),
            "options": OPTIONS,
            "inputs": INPUTS,
            "outputs": OUTPUTS,
        },
        attributes={"config": Attribute(kind, content)},
    )


class SoftwareConfig(Config):
    """empty: the content of a config without one."""

    schema = _schema(
        "OS::Heat::SoftwareConfig",
        "A script or manifest with typed inputs and outputs; immutable.",
        Kind.STRING,
        "The script or manifest.",
    )
    empty: Json = ""

    async def build(self, call: Call) -> NewConfig:
        properties = call.properties
        return _new_config(
            call, properties.get("config") or self.empty, properties.get("group") or UNGROUPED
        )


class StructuredConfig(SoftwareConfig):
    schema = _schema(
        "OS::Heat::StructuredConfig",
        "A software config that is a map, for tools that read JSON or YAML.",
        Kind.MAP,
        "The map.",
    )
    empty: Json = {}  # noqa: RUF012 - never changed


class CloudConfig(Config):
    schema = TypeSchema(
        "OS::Heat::CloudConfig",
        description="A cloud-config document for cloud-init, from a map.",
        properties={"cloud_config": Property(Kind.MAP, "Instructions for cloud-init.")},
        attributes={"config": Attribute(Kind.STRING, "The cloud-config document.")},
    )

    async def build(self, call: Call) -> NewConfig:
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
                            "Actions that use the config.",
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
            "config": Attribute(Kind.MAP, "The stored map: {configs: [...]}."),
            "configs": Attribute(Kind.LIST, "The configs, and when each is used."),
        },
    )

    async def build(self, call: Call) -> NewConfig:
        return _new_config(call, {"configs": call.properties["configs"]}, COMPONENT)

    def attributes_of(self, config: NewConfig) -> dict[str, Json]:
        configs = config.config.get("configs") if isinstance(config.config, dict) else None
        return {"config": config.config, "configs": configs}

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_lists(properties, place, findings)
        seen: set[str] = set()
        for number, one in enumerate(properties.get("configs") or ()):
            listed_actions = one.get("actions") if isinstance(one, dict) else None
            actions = DEFAULT_ACTIONS if listed_actions is None else listed_actions
            twice = sorted({str(action) for action in actions if action in seen})
            if twice:
                findings.add(
                    f"{place}.configs[{number}].actions",
                    "Defining more than one configuration for the same action in"
                    f" SoftwareComponent is not allowed: {', '.join(twice)}",
                    "Name each action in one config only.",
                )
            seen.update(str(action) for action in actions)
