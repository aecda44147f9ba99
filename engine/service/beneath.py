"""What is inside of a stack's resources, as far as it is known; and rules that are held against it.

Templates are known before their stacks are made, what types make up themselves is not.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from engine.errors import Findings, NotFound
from engine.hooks.matching import LEAF, Tree, check_patterns
from engine.hooks.operator import always
from engine.hooks.reading import Reader
from engine.hooks.rule import Limits
from engine.hot.defined import Definition, NestedDefinition
from engine.hot.nesting import add_inside, inside_place
from engine.hot.template import Template
from engine.hot.versions import VERSIONS
from engine.service.blueprint import Blueprint
from engine.types.registry import Registry

#: What a type tells of the inside of its resources.
Beneath = Callable[[str], Tree | None]


def check_rules(
    blueprint: Blueprint, existing: Iterable[tuple[str, str]], registry: Registry, limits: Limits
) -> list[str]:
    """Warnings about short rules that match nothing. Raises Invalid for other wrong rules, also for
    those of templates inside. existing: path and type of resources that there are."""
    findings = Findings()
    beneath = told_by(registry)
    said = (*blueprint.asked, *blueprint.by_environment, *blueprint.by_template)
    known = together(there(existing, beneath), names_in(blueprint.definition, beneath))
    warnings = check_patterns(said, known, findings)
    reader = Reader(Findings(), limits, always, registry.steps())
    _check_inside(blueprint.template, blueprint.definition.nested, reader, beneath, findings)
    findings.raise_if_any()
    return warnings


def told_by(registry: Registry) -> Beneath:
    def beneath(type_name: str) -> Tree | None:
        try:
            return None if registry.get(type_name).nests else LEAF
        except NotFound:
            return None

    return beneath


def names_in(definition: Definition, beneath: Beneath) -> dict[str, Tree | None]:
    """The names of a stack's resources, and of those inside of them."""
    return {
        name: _names_inside(definition.nested[name], beneath)
        if name in definition.nested
        else beneath(one.type)
        for name, one in definition.resources.items()
    }


def _names_inside(nested: NestedDefinition, beneath: Beneath) -> Tree:
    return {
        name: _names_inside(nested.nested[name], beneath)
        if name in nested.nested
        else beneath(one.type)
        for name, one in nested.kind.template.resources.items()
    }


def _check_inside(
    around: Template,
    nested: Mapping[str, NestedDefinition],
    reader: Reader,
    beneath: Beneath,
    findings: Findings,
) -> None:
    """Wrong rules in templates inside, which their stacks would only tell of when they are made.

    Whether a condition holds is judged there, when its parameters are known.
    """
    resources = VERSIONS[around.version].spelling.resources
    for name, one in nested.items():
        template, wrong = one.kind.template, Findings()
        if template.declared:
            said = replace(reader, findings=wrong).declarations(template.declared)
            check_patterns(said, _names_inside(one, beneath), wrong)
        _check_inside(template, one.nested, reader, beneath, wrong)
        place = inside_place(f"{resources}.{name}", one.kind.file)
        add_inside(place, wrong.all, findings)


def there(rows: Iterable[tuple[str, str]], beneath: Beneath) -> dict[str, Tree | None]:
    """What exists. rows: path and type of each resource, after that of the one that it is in."""
    known: dict[str, Any] = {}
    for path, type_name in rows:
        *above, name = path.split("/")
        level = known
        for one in above:
            level[one] = level.get(one) or {}
            level = level[one]
        level[name] = level.get(name) or beneath(type_name)
    return known


def together(
    known: Mapping[str, Tree | None], planned: Mapping[str, Tree | None]
) -> dict[str, Tree | None]:
    """What exists, and what is to be. Where nobody knows what is to be inside, anything may."""
    return dict(known) | {name: _both(known.get(name), below) for name, below in planned.items()}


def _both(known: Tree | None, planned: Tree | None) -> Tree | None:
    if not known or planned is None:
        return planned
    return together(known, planned)
