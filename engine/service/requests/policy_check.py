"""Checks the convergence policy of a stack against its resources."""

from collections.abc import Collection, Iterable, Mapping

from engine.errors import Finding, Findings, NotFound
from engine.hot.expressions.expression import is_static
from engine.plan.convergence import PolicyRules
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.breakpoint_targets import (
    declared_tree,
    existing_tree,
    merge_trees,
    subtree_lookup,
)
from engine.types.registry import TypeRegistry


def check_policy(
    blueprint: Blueprint,
    existing: Iterable[tuple[str, str]],
    registry: TypeRegistry,
    rules: PolicyRules,
    project: str,
) -> list[Finding]:
    """Warnings about the policy. Raises Invalid if it is wrong. existing: (path, type) of the
    existing resources."""
    section = blueprint.convergence
    if section is None:
        return []
    definition, lookup = blueprint.definition, subtree_lookup(registry)
    known = merge_trees(existing_tree(existing, lookup), declared_tree(definition, lookup))

    def paths(name: str) -> Collection[str] | None:
        resource = definition.resources.get(name)
        if resource is None or not isinstance(resource.properties, Mapping):
            return None
        static = {key: one for key, one in resource.properties.items() if is_static(one)}
        if len(static) < len(resource.properties):
            return None
        try:
            return registry.get(resource.type).observed_paths(static)
        except NotFound:
            return None

    findings = Findings()
    rules.check(section, project, known, paths, findings)
    findings.raise_if_any()
    return list(findings.warnings)
