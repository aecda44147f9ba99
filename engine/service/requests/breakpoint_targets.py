"""Checks that breakpoint rules match resources, also in nested stacks.

Resources of nested stacks from template files are known before those stacks exist. Resources of
templates that a type generates are not.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.errors import Finding, Findings, NotFound
from engine.hooks.operator import always
from engine.hooks.rule import HookLimits
from engine.hooks.rule_patterns import (
    LEAF,
    UNMATCHED,
    Tree,
    check_cleared,
    check_patterns,
    nearest_place,
    reaches,
)
from engine.hooks.rule_reader import Declaration, Reader
from engine.hot.definition.model import NestedStackDefinition, StackDefinition
from engine.hot.language.versions import VERSIONS
from engine.hot.nested.nested_templates import add_nested_findings, nested_place
from engine.hot.syntax.globs import is_glob
from engine.hot.syntax.keyed_names import base_name
from engine.hot.template.template import Template
from engine.service.requests.blueprint import Blueprint
from engine.types.registry import TypeRegistry

#: Returns the tree of nested resources of a type, by its name; LEAF: it has none; None: unknown.
SubtreeLookup = Callable[[str], Tree | None]


def check_rules(
    blueprint: Blueprint,
    existing: Iterable[tuple[str, str]],
    registry: TypeRegistry,
    limits: HookLimits,
    cleared_breakpoints: Sequence[str] = (),
) -> list[Finding]:
    """Warnings about short rules, and about breakpoints to skip, that match no resource. Raises
    Invalid for other wrong rules, also in nested templates. existing: (path, type) of the existing
    resources.

    A nested stack gets the rules of its parent for resources that it may have at other times:
    those whose condition is false, and members of a group of another size.
    """
    findings = Findings()
    if not (blueprint.has_rules or blueprint.definition.nested or cleared_breakpoints):
        return []
    lookup = subtree_lookup(registry)
    rules = (*blueprint.by_request, *blueprint.by_environment, *blueprint.by_template)
    known = merge_trees(
        existing_tree(existing, lookup), declared_tree(blueprint.definition, lookup)
    )
    warnings = check_cleared(cleared_breakpoints, known)
    if blueprint.by_parent:
        known = dict.fromkeys(blueprint.template.resources, None) | known
    if blueprint.has_members:
        absent = _absent_members(rules, known)
        named = [one for name, one in absent.items() if not is_glob(name)]
        warnings += [_absent_warning(one, known) for one in named]
        known |= dict.fromkeys(absent, None)
    warnings += check_patterns(rules, known, findings)
    reader = Reader(Findings(), limits, always, registry.steps())
    _check_nested_rules(blueprint.template, blueprint.definition.nested, reader, lookup, findings)
    findings.raise_if_any()
    return warnings


def _absent_members(
    rules: Iterable[Declaration], known: Mapping[str, Tree | None]
) -> dict[str, Declaration]:
    """Return a rule for each member that a group does not have now, but can have. Members of most
    groups have numbers as names."""
    numbered = bool(known) and all(name.isdigit() for name in known)
    found: dict[str, Declaration] = {}
    for one in rules:
        name = one.pattern.partition("/")[0]
        possible = name.isdigit() or is_glob(name) or not numbered
        if name and possible and not reaches(name, known):
            found.setdefault(name, one)
    return found


def _absent_warning(one: Declaration, known: Mapping[str, Tree | None]) -> Finding:
    reason = f'the breakpoint pattern "{one.pattern}" matches no member that the group has now'
    return Finding(one.place, reason, nearest_place(one.pattern, known), UNMATCHED)


def subtree_lookup(registry: TypeRegistry) -> SubtreeLookup:
    """The lookup for the types of a registry; unknown types have unknown subtrees."""

    def lookup(type_name: str) -> Tree | None:
        try:
            return None if registry.get(type_name).has_nested_stack else LEAF
        except NotFound:
            return None

    return lookup


def declared_tree(definition: StackDefinition, lookup: SubtreeLookup) -> dict[str, Tree | None]:
    """The resources that a stack's template declares, with those of its nested templates."""
    return _with_base_names(
        {
            name: _nested_tree(definition.nested[name], lookup)
            if name in definition.nested
            else lookup(one.type)
            for name, one in definition.resources.items()
        }
    )


def _with_base_names(tree: dict[str, Tree | None]) -> dict[str, Tree | None]:
    """Add `web` for the resources such as `web["a"]`: a pattern may be for all of them."""
    bases = {base: below for name, below in tree.items() if (base := base_name(name))}
    return bases | tree if bases else tree


def _nested_tree(nested: NestedStackDefinition, lookup: SubtreeLookup) -> Tree:
    return {
        name: _nested_tree(nested.nested[name], lookup)
        if name in nested.nested
        else lookup(one.type)
        for name, one in nested.kind.template.resources.items()
    }


def _check_nested_rules(
    parent: Template,
    nested: Mapping[str, NestedStackDefinition],
    reader: Reader,
    lookup: SubtreeLookup,
    findings: Findings,
) -> None:
    """Add findings for wrong rules in nested templates, before their stacks are created.

    Conditions are evaluated later, when the nested stack's parameters are known.
    """
    resources = VERSIONS[parent.version].dialect.resources
    for name, one in nested.items():
        template, wrong = one.kind.template, Findings()
        if template.hook_declarations:
            rules = replace(reader, findings=wrong).declarations(template.hook_declarations)
            check_patterns(rules, _nested_tree(one, lookup), wrong)
        _check_nested_rules(template, one.nested, reader, lookup, wrong)
        place = nested_place(f"{resources}.{name}", one.kind.file)
        add_nested_findings(place, one.kind.file, wrong.all, findings)


def existing_tree(rows: Iterable[tuple[str, str]], lookup: SubtreeLookup) -> dict[str, Tree | None]:
    """The existing resources. rows: (path, type) of each, parents before their children."""
    known: dict[str, Any] = {}
    for path, type_name in rows:
        *above, name = path.split("/")
        level = known
        for one in above:
            level[one] = level.get(one) or {}
            level = level[one]
        level[name] = level.get(name) or lookup(type_name)
        if base := base_name(name):
            level[base] = level[name]
    return known


def merge_trees(
    known: Mapping[str, Tree | None], planned: Mapping[str, Tree | None]
) -> dict[str, Tree | None]:
    """The existing and the declared resources. A subtree that is unknown in `planned` is
    unknown."""
    return dict(known) | {name: _merge(known.get(name), below) for name, below in planned.items()}


def _merge(known: Tree | None, planned: Tree | None) -> Tree | None:
    if not known or planned is None:
        return planned
    return merge_trees(known, planned)
