"""Dependencies without a reference: a type says after which resources of its template it comes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.hot.definition.model import ResourceDefinition
from engine.hot.expressions.expression import Expression
from engine.hot.schema.type_schema import ImplicitDependency, TypeSchema

Definitions = Mapping[str, ResourceDefinition]


def add_implicit(
    defined: dict[str, ResourceDefinition], schemas: Mapping[str, TypeSchema | None]
) -> None:
    """Add the resources that `TypeSchema.follows` names to `requires`. One that already requires
    the resource, through any others, is left out."""
    following = {
        name: schema.follows
        for name, schema in schemas.items()
        if schema is not None and schema.follows and name in defined
    }
    if not following:
        return
    by_type: dict[str, list[str]] = {}
    required_by: dict[str, list[str]] = {}
    for name, one in defined.items():
        by_type.setdefault(one.type, []).append(name)
        for required in one.requires:
            required_by.setdefault(required, []).append(name)
    for name, rules in following.items():
        followed = set(_followed(name, rules, defined, by_type))
        if followed:
            followed -= _behind(name, required_by)
            for other in followed:
                required_by.setdefault(other, []).append(name)
            defined[name] = replace(defined[name], requires=defined[name].requires | followed)


def _followed(
    name: str,
    rules: tuple[ImplicitDependency, ...],
    defined: Definitions,
    by_type: Mapping[str, list[str]],
) -> Iterator[str]:
    properties = defined[name].properties
    for rule in rules:
        own = list(_values(properties, rule.own.split("."))) if rule.own else []
        for other in by_type.get(rule.type, ()):
            if other == name or other in defined[name].requires:
                continue
            theirs = _values(defined[other].properties, rule.other.split("."))
            if not rule.own or any(value in own for value in theirs if value is not None):
                yield other


def _values(value: Expression, path: list[str]) -> Iterator[Expression]:
    """The values at a path; `*` is each item of a list."""
    if not path:
        yield value
    elif path[0] == "*":
        for item in value if isinstance(value, list) else []:
            yield from _values(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _values(value[path[0]], path[1:])


def _behind(name: str, required_by: Mapping[str, list[str]]) -> set[str]:
    """The resources that require this one, through any others."""
    found, pending = {name}, [name]
    while pending:
        for other in required_by.get(pending.pop(), ()):
            if other not in found:
                found.add(other)
                pending.append(other)
    return found
