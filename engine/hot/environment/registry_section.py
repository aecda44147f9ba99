"""Reads the `resource_registry` section of an environment: aliases, hooks, restricted actions
and labels of workers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.errors import Findings, one_of
from engine.hot.environment.label_syntax import LABEL_REMEDY, label_problem
from engine.hot.environment.registry import (
    CIRCLE_REMEDY,
    CircularAlias,
    RegistryEntry,
    ResourceRegistry,
    is_template_file,
)
from engine.hot.template.hook_declarations import HookDeclaration, read_resource_hooks
from engine.words import Json, Restriction

#: Keys of a resource's entry that are neither types nor resources of its nested stack.
RESOURCE_KEYS = ("hooks", "restricted_actions")
#: Its value is text, so that a resource of a nested stack can have this name, too.
LABEL = "label"
#: Clients resolve file names relative to it; the engine ignores it.
BASE_URL = "base_url"
RESOURCES = "resources"


def read_registry(
    section: Mapping[str, Json], findings: Findings, operator: ResourceRegistry | None
) -> tuple[ResourceRegistry, list[HookDeclaration]]:
    """Return the registry and the hooks declared in its `resources`.

    A null removes matching entries of the operator's registry, whatever the order of keys.
    operator: the operator's registry; None: this is the operator's.
    """
    reader = _RegistryReader(findings, of_operator=operator is None)
    for name, target in section.items():
        place = f"resource_registry.{name}"
        if name == RESOURCES:
            reader.read_resources(target, (), place)
        elif name != BASE_URL and target is not None and reader.is_valid(name, target, place):
            reader.mapped[name] = RegistryEntry((name,), target, reader.of_operator)
    removed = tuple(name for name, target in section.items() if target is None)
    registry = ResourceRegistry(
        reader.mapped,
        reader.by_resource,
        removed,
        tuple(reader.restrictions),
        operator,
        frozenset(len(name) - 1 for name in reader.mapped if name.endswith("*")),
        tuple(reader.labels),
        tuple(reader.requested_labels),
    )
    _refuse_cycles(registry, findings)
    return registry, reader.hook_declarations


def _refuse_cycles(registry: ResourceRegistry, findings: Findings) -> None:
    for name in registry.mapped:
        try:
            registry.find(name, "", ())
        except CircularAlias as circle:
            findings.add(
                f"resource_registry.{name}",
                f"Circular aliases: {circle}",
                CIRCLE_REMEDY,
            )


@dataclass(slots=True)
class _RegistryReader:
    findings: Findings
    of_operator: bool
    mapped: dict[str, RegistryEntry] = field(default_factory=dict)
    by_resource: dict[str, dict[str, RegistryEntry]] = field(default_factory=dict)
    restrictions: list[tuple[str, frozenset[Restriction]]] = field(default_factory=list)
    labels: list[tuple[str, str]] = field(default_factory=list)
    requested_labels: list[tuple[str, str]] = field(default_factory=list)
    hook_declarations: list[HookDeclaration] = field(default_factory=list)

    def is_valid(self, name: str, target: Json, place: str) -> bool:
        before = len(self.findings.all)
        if not isinstance(target, str) or not target:
            self.findings.add(
                place,
                "This must be the name of a resource type.",
                "Write the name of a type, or the path of a template that ends in .yaml.",
            )
        elif "*" in name[:-1] or "*" in target[:-1] or (target.endswith("*") > name.endswith("*")):
            reason = "A wildcard is allowed only at the end, of both names or of the left one."
            self.findings.add(
                place,
                reason,
                "Write *, for example My::* for My::Server and My::Volume, at the end.",
            )
        elif name.endswith("*") and is_template_file(target):
            reason = "A wildcard cannot be mapped to a template."
            self.findings.add(place, reason, "Name each type that the template implements.")
        return len(self.findings.all) == before

    def read_resources(self, section: Json, path: tuple[str, ...], place: str) -> None:
        """Read `resources`, one level for each level of nested stacks."""
        if section is not None and not isinstance(section, dict):
            self.findings.add(
                place,
                "This must be a map of resource names.",
                "Write resources: {NAME: {hooks: pre-create}}.",
            )
            return
        for name, entry in (section or {}).items():
            here = f"{place}.{name}"
            if isinstance(entry, dict):
                self._read_resource(entry, (*path, name), here)
            else:
                reason = "This must be a map with hooks or types for the resource."
                self.findings.add(
                    here, reason, "Write NAME: {hooks: pre-create}, or NAME: {TYPE: TEMPLATE}."
                )

    def _read_resource(self, entry: Mapping[str, Json], path: tuple[str, ...], place: str) -> None:
        below: dict[str, Json] = {}
        for key, value in entry.items():
            here = f"{place}.{key}"
            if key == "hooks":
                self.hook_declarations += read_resource_hooks(
                    "/".join(path), value, here, self.findings
                )
            elif key == "restricted_actions":
                self._add_restrictions(value, path, here)
            elif key == LABEL and not isinstance(value, dict):
                self._add_label(value, path, here)
            elif isinstance(value, dict):
                below[key] = value
            elif value is not None:
                self._add_type(key, value, path, here)
        self.read_resources(below, path, place)

    def _add_type(self, name: str, target: Json, path: tuple[str, ...], place: str) -> None:
        """Add an alias for one resource. Deeper levels are read by the nested stacks' own
        environments.
        """
        if name.endswith("*"):
            reason = "A wildcard has no effect in the entry of one resource."
            self.findings.warn(place, reason, "Name each type.", "NoEffect")
        elif self.is_valid(name, target, place) and len(path) == 1:
            entry = RegistryEntry((RESOURCES, *path, name), target, self.of_operator)
            self.by_resource.setdefault(path[0], {})[name] = entry

    def _add_label(self, label: Json, path: tuple[str, ...], place: str) -> None:
        """Null and "": no label."""
        if not isinstance(label, str | None):
            reason = "This must be a label, which is text."
            self.findings.add(place, reason, f"{LABEL_REMEDY}.")
            return
        if label and (problem := label_problem(label)):
            subject = "" if problem.startswith('"') else "It "
            self.findings.add(place, f"{subject}{problem}.", f"{LABEL_REMEDY}.")
            return
        if len(path) == 1:
            self.labels.append((path[0], label or ""))
        if label:
            self.requested_labels.append((place, label))

    def _add_restrictions(self, given: Json, path: tuple[str, ...], place: str) -> None:
        if given is None:
            return
        items = given if isinstance(given, list) else [given]
        known = [one.value for one in Restriction]
        for item in items:
            if item not in known:
                self.findings.add(
                    place,
                    f'Invalid restricted_action type "{item}" for resource, acceptable '
                    f"restricted_action types are: {tuple(known)}",
                    one_of(str(item), known, "Known"),
                    "InvalidRestrictedAction",
                )
        if len(path) == 1:
            restricted = frozenset(Restriction(one) for one in items if one in known)
            self.restrictions.append((path[0], restricted))
