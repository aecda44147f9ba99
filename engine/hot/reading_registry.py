"""Reading the ``resource_registry`` of an environment: names of types, hooks and restrictions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.errors import Findings, nearest
from engine.hot.declared import DeclaredHook, declared_at
from engine.hot.registry import CircularAlias, Mapped, Registry, is_template_file
from engine.words import Json, Restriction

#: Keys under the name of a resource that are no types, and no resources of its nested stack.
OF_RESOURCE = ("hooks", "restricted_actions")
#: A client has its files relative to it; nothing here reads it.
BASE_URL = "base_url"
RESOURCES = "resources"


def read_registry(
    section: Mapping[str, Json], findings: Findings, operator: Registry | None
) -> tuple[Registry, list[DeclaredHook]]:
    """Read a registry with the hooks that its ``resources`` declare.

    Nulls take away what others map, whatever the order of keys. operator: the operator's registry,
    beneath this one; None: this is the operator's.
    """
    reading = _Reading(findings, of_operator=operator is None)
    for name, target in section.items():
        place = f"resource_registry.{name}"
        if name == RESOURCES:
            reading.resources(target, (), place)
        elif name != BASE_URL and target is not None and reading.is_good(name, target, place):
            reading.mapped[name] = Mapped((name,), target, reading.of_operator)
    removed = tuple(name for name, target in section.items() if target is None)
    registry = Registry(
        reading.mapped,
        reading.by_resource,
        removed,
        tuple(reading.restrictions),
        operator,
        frozenset(len(name) - 1 for name in reading.mapped if name.endswith("*")),
    )
    _refuse_circles(registry, findings)
    return registry, reading.declared


def _refuse_circles(registry: Registry, findings: Findings) -> None:
    for name in registry.mapped:
        try:
            registry.find(name, "", ())
        except CircularAlias as circle:
            findings.add(f"resource_registry.{name}", f"Aliases in a circle: {circle}")


@dataclass(slots=True)
class _Reading:
    findings: Findings
    of_operator: bool
    mapped: dict[str, Mapped] = field(default_factory=dict)
    by_resource: dict[str, dict[str, Mapped]] = field(default_factory=dict)
    restrictions: list[tuple[str, frozenset[Restriction]]] = field(default_factory=list)
    declared: list[DeclaredHook] = field(default_factory=list)

    def is_good(self, name: str, target: Json, place: str) -> bool:
        before = len(self.findings.all)
        if not isinstance(target, str) or not target:
            self.findings.add(place, "This must be the name of a resource type.")
        elif "*" in name[:-1] or "*" in target[:-1] or (target.endswith("*") > name.endswith("*")):
            reason = "A wildcard can stand at the end only, of both or of the left side."
            self.findings.add(place, reason)
        elif name.endswith("*") and is_template_file(target):
            reason = "A wildcard cannot lead to a template."
            self.findings.add(place, reason, "Name each type that the template stands for.")
        return len(self.findings.all) == before

    def resources(self, section: Json, path: tuple[str, ...], place: str) -> None:
        """Walk ``resources``, one level for each level of nested stacks."""
        if section is not None and not isinstance(section, dict):
            self.findings.add(place, "This must be a map of resource names.")
            return
        for name, entry in (section or {}).items():
            here = f"{place}.{name}"
            if isinstance(entry, dict):
                self._resource(entry, (*path, name), here)
            else:
                reason = "This must be a map with hooks or types for the resource."
                self.findings.add(here, reason)

    def _resource(self, entry: Mapping[str, Json], path: tuple[str, ...], place: str) -> None:
        below: dict[str, Json] = {}
        for key, value in entry.items():
            here = f"{place}.{key}"
            if key == "hooks":
                self.declared += declared_at("/".join(path), value, here, self.findings)
            elif key == "restricted_actions":
                self._restricted(value, path, here)
            elif isinstance(value, dict):
                below[key] = value
            elif value is not None:
                self._type(key, value, path, here)
        self.resources(below, path, place)

    def _type(self, name: str, target: Json, path: tuple[str, ...], place: str) -> None:
        """Types for resources of nested stacks are those stacks' own environment's to read."""
        if name.endswith("*"):
            reason = "A wildcard means nothing for one resource."
            self.findings.add(place, reason, "Name each type.")
        elif self.is_good(name, target, place) and len(path) == 1:
            entry = Mapped((RESOURCES, *path, name), target, self.of_operator)
            self.by_resource.setdefault(path[0], {})[name] = entry

    def _restricted(self, given: Json, path: tuple[str, ...], place: str) -> None:
        if given is None:
            return
        items = given if isinstance(given, list) else [given]
        known = [one.value for one in Restriction]
        for item in items:
            if item not in known:
                self.findings.add(
                    place,
                    f'Invalid restricted_action type "{item}" for resource, acceptable '
                    f"restricted_action types are: {', '.join(known)}",
                    nearest(str(item), known),
                    "InvalidRestrictedAction",
                )
        if len(path) == 1:
            said = frozenset(Restriction(one) for one in items if one in known)
            self.restrictions.append((path[0], said))
