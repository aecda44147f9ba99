"""Checks the convergence policy of a stack against its resources."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.errors import Finding, Findings, NotFound
from engine.hooks.rule_patterns import LEAF, Tree, pattern_at
from engine.hot.definition.model import ResourceDefinition, StackDefinition
from engine.hot.expressions.expression import Expression, FunctionCall
from engine.hot.schema.properties import fill_defaults
from engine.hot.syntax.globs import is_glob, matches_glob
from engine.hot.syntax.keyed_names import base_name
from engine.plan.convergence import PolicyRules
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.breakpoint_targets import (
    declared_tree,
    existing_tree,
    merge_trees,
    subtree_lookup,
)
from engine.types.registry import TypeRegistry
from engine.words import Json


def check_policy(
    blueprint: Blueprint,
    existing: Iterable[tuple[str, str]],
    registry: TypeRegistry,
    rules: PolicyRules,
    project: str,
) -> list[Finding]:
    """Warnings about the policy. Raises Invalid if it is wrong. existing: (path, type) of the
    existing resources."""
    findings = Findings()
    check_section(
        blueprint.convergence, blueprint.definition, registry, rules, project, findings, existing
    )
    findings.raise_if_any()
    return list(findings.warnings)


def check_section(
    section: Json,
    definition: StackDefinition,
    registry: TypeRegistry,
    rules: PolicyRules,
    project: str,
    findings: Findings,
    existing: Iterable[tuple[str, str]] = (),
) -> None:
    """Add findings about the section of a stack (None: it has none), and warnings. definition: may
    have resources whose condition is not known yet."""
    if section is None:
        return
    lookup = subtree_lookup(registry)
    undecided = {name: lookup(one) for name, one in definition.undecided.items()}
    declared = {**undecided, **declared_tree(definition, lookup)}
    known = merge_trees(existing_tree(existing, lookup), declared)
    compared = _ComparedPaths(registry)
    rules.check(
        section, project, known, lambda one: compared.find(one, definition, known), findings
    )


@dataclass(frozen=True, slots=True)
class _ComparedPaths:
    """The paths that observations compare. found: by the ID of a definition, which is kept."""

    registry: TypeRegistry
    found: dict[int, Collection[str] | None] = field(default_factory=dict)

    def find(
        self,
        pattern: str,
        definition: StackDefinition,
        known: Tree,
        path: Sequence[str] = (),
        *,
        is_sample: bool = False,
    ) -> Iterator[tuple[str, Collection[str] | None]]:
        """Yield the resources that a pattern matches, each with its paths; None: not known. path:
        names of the resources that lead to the stack from the root stack. is_sample: the stack has
        also other members, like these."""
        local = pattern_at(pattern, path) if "/" in pattern else pattern
        contained = {one.resource: one for one in definition.contained}
        names = _names_in(definition, known)
        matching = [one for one in names if _matches(one, local)]
        if is_sample and not matching and (is_glob(pattern) or "/" in pattern):
            matching = names if local is not None and "/" not in local else []
        for name in matching:
            place = "/".join((*path, name))
            if name in definition.resources:
                yield place, self._paths_of(definition.resources[name])
            else:
                yield place, None if known.get(name) == LEAF else ()
        for name in names:
            inside, below = contained.get(name), known.get(name, LEAF)
            deeper = (*path, name)
            if (inside is None and below == LEAF) or not _reaches_into(pattern, deeper):
                continue
            if inside is not None:
                stack, sample = inside.definition, inside.is_sample
                yield from self.find(pattern, stack, below or LEAF, deeper, is_sample=sample)
            elif "/" in pattern or is_glob(pattern):
                yield "/".join((*deeper, "*")), None

    def _paths_of(self, resource: ResourceDefinition) -> Collection[str] | None:
        if id(resource) not in self.found:
            self.found[id(resource)] = self._read_paths(resource)
        return self.found[id(resource)]

    def _read_paths(self, resource: ResourceDefinition) -> Collection[str] | None:
        try:
            kind = self.registry.get(resource.type)
        except NotFound:  # a template
            return ()
        if isinstance(resource.properties, Mapping):
            given = {key: one for key, one in resource.properties.items() if one is not None}
        else:
            given = dict.fromkeys(kind.schema.properties)
        return kind.observed_paths(fill_defaults(kind.schema, _known_values(given)))


def _names_in(definition: StackDefinition, known: Tree) -> list[str]:
    """The resources that a stack has or will have, without the common names of those with
    `for_each`."""
    bases = {base_name(one) for one in known}
    others = [one for one in known if one not in definition.resources and one not in bases]
    return [*definition.resources, *others]


def _reaches_into(pattern: str, path: Sequence[str]) -> bool:
    """Whether a pattern can match a resource in the nested stack at a path."""
    return "/" not in pattern or pattern_at(pattern, path) is not None


def _matches(name: str, pattern: str | None) -> bool:
    return pattern is not None and "/" not in pattern and matches_glob(name, pattern)


def _known_values(properties: Mapping[str, Expression]) -> dict[str, Json]:
    """The properties, with None for values that are not known yet."""
    return {key: _known_value(one) for key, one in properties.items()}


def _known_value(value: Expression) -> Json:
    if isinstance(value, FunctionCall):
        return None
    if isinstance(value, Mapping):
        return _known_values(value)
    return [_known_value(one) for one in value] if isinstance(value, list) else value
