"""Names of resource types by other names: the ``resource_registry`` of an environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from engine.errors import Findings, nearest
from engine.hot.declared import DeclaredHook, declared_at
from engine.words import Json, Restriction

#: On the way from one name: more are a circle, though each may be another name (``A*: AA*``).
MOST_ALIASES = 30
TEMPLATE_FILES = (".yaml", ".template")


@dataclass(frozen=True, slots=True)
class Registry:
    """exact and wildcard (``OS::A::*``, kept without the star) map a type to a type.

    by_resource: the same for one resource, by the resource's exact name.
    restrictions: what may not be done, by globs on resource names.
    """

    exact: Mapping[str, str] = field(default_factory=dict)
    wildcard: Mapping[str, str] = field(default_factory=dict)
    by_resource: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    restrictions: tuple[tuple[str, frozenset[Restriction]], ...] = ()

    def restricted(self, resource: str) -> frozenset[Restriction]:
        """What may not be done to a resource, by all patterns that match its name."""
        if not self.restrictions:
            return frozenset()
        said = [kinds for pattern, kinds in self.restrictions if fnmatchcase(resource, pattern)]
        return frozenset().union(*said)

    def resolve(self, name: str, resource: str = "") -> str:
        """Return the type at the end of the chain of aliases; CircularAlias when there is none."""
        own = self.by_resource.get(resource, {})
        if not self.exact and not self.wildcard and not own:
            return name
        seen = [name]
        while (after := self._step(name, own)) is not None:
            if after in seen or len(seen) == MOST_ALIASES:
                raise CircularAlias(" -> ".join(one[:100] for one in [*seen[:4], after]))
            seen.append(after)
            name = after
        return name

    def _step(self, name: str, own: Mapping[str, str]) -> str | None:
        for table in (own, self.exact):
            if (after := table.get(name)) is not None and after != name:
                return after
        for prefix in sorted(self.wildcard, key=lambda one: (-len(one), one)):
            if name.startswith(prefix):
                target = self.wildcard[prefix]
                after = target[:-1] + name[len(prefix) :] if target.endswith("*") else target
                if after != name:
                    return after
        return None


class CircularAlias(Exception):
    """Aliases that lead back to themselves; the text shows the chain."""


def is_template_file(type_name: str) -> bool:
    """Whether a type is a nested template, by the name of its file or address."""
    return type_name.endswith(TEMPLATE_FILES)


def read_registry(
    section: Mapping[str, Json], findings: Findings
) -> tuple[Registry, list[DeclaredHook]]:
    """Read a resource_registry: the aliases, and the hooks that its ``resources`` declare."""
    exact: dict[str, str] = {}
    wildcard: dict[str, str] = {}
    by_resource: dict[str, dict[str, str]] = {}
    declared: list[DeclaredHook] = []
    restrictions: list[tuple[str, frozenset[Restriction]]] = []
    for name, target in section.items():
        place = f"resource_registry.{name}"
        if name == "base_url":
            continue
        if name == "resources":
            if target is not None and not isinstance(target, dict):
                findings.add(place, "This must be a map of resource names.")
            else:
                _resources(target or {}, (), place, by_resource, declared, findings)
                _restrictions(target or {}, place, restrictions, findings)
        elif target is None:
            _remove(name, exact, wildcard)
        elif _good_target(name, target, place, findings):
            if name.endswith("*"):
                wildcard[name[:-1]] = target
            else:
                exact[name] = target
    registry = Registry(exact, wildcard, by_resource, tuple(restrictions))
    _refuse_circles(registry, findings)
    return registry, declared


def _remove(name: str, exact: dict[str, str], wildcard: dict[str, str]) -> None:
    """Null takes away what was mapped before; with a star, all that begins so."""
    if not name.endswith("*"):
        exact.pop(name, None)
        return
    for table in (exact, wildcard):
        for key in [one for one in table if one.startswith(name[:-1])]:
            del table[key]


def _good_target(name: str, target: Json, place: str, findings: Findings) -> bool:
    if not isinstance(target, str) or not target:
        findings.add(place, "This must be the name of a resource type.")
        return False
    if is_template_file(target):
        reason = f"Nested templates ({target}) are not available yet in this release."
        findings.add(place, reason, "Map to a resource type.")
        return False
    if "*" in name[:-1] or "*" in target[:-1] or (target.endswith("*") and not name.endswith("*")):
        findings.add(place, "A wildcard can stand at the end only, of both or of the left side.")
        return False
    return True


def _refuse_circles(registry: Registry, findings: Findings) -> None:
    for name in registry.exact:
        try:
            registry.resolve(name)
        except CircularAlias as circle:
            findings.add(f"resource_registry.{name}", f"Aliases in a circle: {circle}")


def _resources(
    section: Mapping[str, Json],
    path: tuple[str, ...],
    place: str,
    by_resource: dict[str, dict[str, str]],
    declared: list[DeclaredHook],
    findings: Findings,
) -> None:
    """Walk ``resources``, one level for each level of nested stacks."""
    for name, entry in section.items():
        here = f"{place}.{name}"
        if not isinstance(entry, dict):
            findings.add(here, "This must be a map with hooks or types for the resource.")
            continue
        below: dict[str, Json] = {}
        for key, value in entry.items():
            if key == "hooks":
                pattern = "/".join((*path, name))
                declared += declared_at(pattern, value, f"{here}.hooks", findings)
            elif key == "restricted_actions":
                continue  # read by _restrictions
            elif isinstance(value, dict):
                below[key] = value
            elif _good_target(key, value, f"{here}.{key}", findings):
                if path:
                    reason = "Types for resources of nested stacks are not available yet."
                    findings.add(f"{here}.{key}", reason)
                by_resource.setdefault(name, {})[key] = value
        _resources(below, (*path, name), here, by_resource, declared, findings)


def _restrictions(
    section: Mapping[str, Json],
    place: str,
    restrictions: list[tuple[str, frozenset[Restriction]]],
    findings: Findings,
) -> None:
    for name, entry in section.items():
        given = entry.get("restricted_actions") if isinstance(entry, dict) else None
        if given is None:
            continue
        items = given if isinstance(given, list) else [given]
        known = [one.value for one in Restriction]
        for item in items:
            if item not in known:
                findings.add(
                    f"{place}.{name}.restricted_actions",
                    f'Invalid restricted_action type "{item}" for resource, acceptable '
                    f"restricted_action types are: {', '.join(known)}",
                    nearest(str(item), known),
                    "InvalidRestrictedAction",
                )
        restrictions.append((name, frozenset(Restriction(one) for one in items if one in known)))
