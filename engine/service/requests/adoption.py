"""Reads the resources of an export that a stack adopts, and checks them."""

from collections.abc import Mapping

from engine.errors import Finding, Findings, Invalid
from engine.hot.definition.stack import StackDefinition
from engine.plan.draft import AdoptedResource
from engine.service.requests.blueprint import Blueprint
from engine.store.encryption.encrypted_rows import UNDECRYPTABLE
from engine.types.nested_state import EXPORTED, ExportedNested
from engine.types.registry import TypeRegistry
from engine.types.software.metadata_objects import OBJECTS
from engine.words import Json

SEND_EXPORT = "Send the output of `headgate stack export`."


def check_adopted(
    blueprint: Blueprint, adopted: Mapping[str, AdoptedResource], registry: TypeRegistry
) -> None:
    """Raise Invalid for resources without a physical ID, and for nested stacks without content."""
    resources = blueprint.definition.resources
    wrong = [
        Finding(
            f"resources.{name}",
            "Resource ID was not provided.",
            "Add its physical ID to adopt_stack_data, or remove the resource.",
            "StackValidationFailed",
        )
        for name, one in resources.items()
        if name not in adopted and one.external_id is None
    ]
    wrong += [
        Finding(
            f"resources.{name}",
            "The export has no resources of the nested stack.",
            f"Add them to adopt_stack_data.resources.{name}.resources, or adopt the nested stack as"
            " a root stack, without its parent.",
            "StackValidationFailed",
        )
        for name, one in resources.items()
        if name in adopted
        and registry.get(one.type).has_nested_stack
        and EXPORTED not in adopted[name].data
    ]
    if wrong:
        raise Invalid(wrong)


def check_imported(definition: StackDefinition, registry: TypeRegistry) -> None:
    """Raise Invalid if a resource of the section `import` cannot be adopted."""
    wrong = [
        Finding(
            f"resources.{name}",
            "A nested stack cannot be imported.",
            "Import the resources inside of it, in a stack of their own.",
            "NotSupported",
        )
        for name in definition.imported
        if registry.get(definition.resources[name].type).has_nested_stack
    ]
    if wrong:
        raise Invalid(wrong)


def imported_resources(definition: StackDefinition) -> dict[str, AdoptedResource]:
    """The physical resources that a change adopts where its resources are new."""
    return {name: AdoptedResource(physical_id) for name, physical_id in definition.imported.items()}


def read_adopted(
    resources: Mapping[str, Json], findings: Findings, start: str = "adopt_stack_data"
) -> dict[str, AdoptedResource]:
    """The resources of an export, by name. start: the place of the stack, for findings."""
    adopted: dict[str, AdoptedResource] = {}
    for name, one in resources.items():
        place = f"{start}.resources.{name}"
        if not isinstance(one, Mapping):
            findings.add(place, "is not a map", SEND_EXPORT)
            continue
        data, metadata = one.get("resource_data") or {}, one.get("metadata") or {}
        if not isinstance(data, Mapping) or not isinstance(metadata, Mapping):
            findings.add(place, "has data that is not a map", SEND_EXPORT)
            continue
        if {UNDECRYPTABLE} in (set(data), set(metadata)):
            reason = "has data that the export could not decrypt"
            findings.add(place, reason, "Replace its resource_data and metadata, or remove them.")
            continue
        nested = _read_nested(one, place, findings)
        physical_id = one.get("resource_id") or (one.get("id") if nested else None)
        if physical_id is None and nested is None:
            continue
        # URLs to which Headgate writes are signed again, never taken from a request.
        whole = {key: value for key, value in data.items() if key not in (EXPORTED, OBJECTS)}
        if nested is not None:
            whole[EXPORTED] = nested.document()
        adopted[name] = AdoptedResource(str(physical_id or name), whole, dict(metadata))
    return adopted


def _read_nested(one: Mapping[str, Json], place: str, findings: Findings) -> ExportedNested | None:
    """The exported nested stack of a resource; None if it has none. As in Heat, the resource and
    its nested stack are one map."""
    if "resources" not in one:
        return None
    environment = one.get("environment") or {}
    values = environment.get("parameters") or {} if isinstance(environment, Mapping) else None
    parts = (one["resources"], one.get("template") or {}, values)
    if not all(isinstance(part, Mapping) for part in parts):
        reason = "has resources, a template or an environment that is not a map"
        findings.add(place, reason, SEND_EXPORT)
        return None
    resources, template, parameters = (dict(part or {}) for part in parts)
    read_adopted(resources, findings, place)
    return ExportedNested(template, parameters, resources)
