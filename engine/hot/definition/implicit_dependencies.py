"""Dependencies without a reference: a type says after which resources of its template it comes.

The time is proportional to the resources, their requirements and the added dependencies. Resources
with the same value share one group, so that pairs of resources are made only for dependencies that
are added.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from engine.hot.definition.model import ResourceDefinition
from engine.hot.expressions.expression import Expression, FunctionCall
from engine.hot.nested.nested_templates import MAX_IMPLICIT
from engine.hot.schema.type_schema import ImplicitDependency, TypeSchema
from engine.topological_order import sort_topologically

Definitions = Mapping[str, ResourceDefinition]

#: Maximum steps of the search for resources that require each other through implicit dependencies.
MAX_STEPS: Final = 200_000


class TooManyDependencies(Exception):
    """The types add too many dependencies. place: of a resource that has them."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(reason)
        self.place = place


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The names of resources of a type with the same value, in the order of the template."""

    names: list[str] = field(default_factory=list)


#: By name of a follower: the groups of resources after which it comes.
Followers = Mapping[str, list[_Group]]


def add_implicit(
    defined: dict[str, ResourceDefinition],
    schemas: Mapping[str, TypeSchema | None],
    limit: int,
) -> int:
    """Add the resources that `TypeSchema.follows` names to `requires`; return their number. One
    that already requires the resource, through any others, is left out.

    Raises TooManyDependencies for more than `limit`, and adds none then. If resources require each
    other, which is reported later, none may be added.
    """
    followers = _followers(defined, schemas)
    if not followers:
        return 0
    circular = _find_circular(defined, followers)
    search = _CircularSearch.build(defined, followers, circular) if circular else None
    if circular and search is None:
        return 0
    outside = {
        group: [one for one in group.names if one not in circular]
        for group in _all_groups(followers)
    }
    added: dict[str, set[str]] = {}
    count = 0
    for name, groups in followers.items():
        known = defined[name]
        followed = set[str]().union(*(outside[group] for group in groups))
        if search is not None and name in circular:
            followed |= search.add(name, groups)
        followed -= known.requires
        followed.discard(name)
        count += len(followed)
        if count > limit:
            example = f'"{known.type}" adds {len(followed)} to this resource'
            raise TooManyDependencies(
                known.place,
                f"The types of the resources add more than {MAX_IMPLICIT} dependencies to the"
                f" stack and its nested stacks: {example}.",
            )
        added[name] = followed
    for name, followed in added.items():
        if followed:
            defined[name] = replace(defined[name], requires=defined[name].requires | followed)
    return count


def _followers(defined: Definitions, schemas: Mapping[str, TypeSchema | None]) -> Followers:
    following = {
        name: schema.follows
        for name, schema in schemas.items()
        if schema is not None and schema.follows and name in defined
    }
    if not following:
        return {}
    by_type: dict[str, list[str]] = {}
    for name, one in defined.items():
        by_type.setdefault(one.type, []).append(name)
    indexes: dict[tuple[str, str], dict[Hashable, _Group]] = {}
    found: dict[str, list[_Group]] = {}
    for name, rules in following.items():
        groups: dict[_Group, None] = {}
        for rule in rules:
            place = rule.type, rule.other if rule.own else ""
            index = indexes.get(place)
            if index is None:
                index = indexes[place] = _index(place, by_type.get(rule.type, ()), defined)
            for key in _own_keys(defined[name], rule) if index else ():
                if (group := index.get(key)) is not None:
                    groups[group] = None
        if groups:
            found[name] = [*groups]
    return found


def _all_groups(followers: Followers) -> dict[_Group, None]:
    return dict.fromkeys(group for groups in followers.values() for group in groups)


def _index(
    place: tuple[str, str], names: Iterable[str], defined: Definitions
) -> dict[Hashable, _Group]:
    """Return the groups of resources by their value. place: their type, and the path of the value;
    "": all are one group, with the key None."""
    path = place[1]
    index: dict[Hashable, _Group] = {}
    for name in names:
        values = _values(defined[name].properties, path.split(".")) if path else [None]
        keys = {_key(value) for value in values if value is not None or not path}
        for key in keys:
            index.setdefault(key, _Group()).names.append(name)
    return index


def _own_keys(one: ResourceDefinition, rule: ImplicitDependency) -> Collection[Hashable]:
    if not rule.own:
        return (None,)
    return {_key(value) for value in _values(one.properties, rule.own.split("."))}


def _key(value: Expression) -> Hashable:
    """Return what is equal if the values are, and can be a key."""
    if isinstance(value, list):
        return (list, *map(_key, value))
    if isinstance(value, dict):
        return (dict, frozenset((name, _key(item)) for name, item in value.items()))
    if isinstance(value, FunctionCall):
        return (FunctionCall, value.name, value.version, _key(value.args))
    known: Hashable = value
    return known


def _values(value: Expression, path: list[str]) -> Iterator[Expression]:
    """The values at a path; `*` is each item of a list."""
    if not path:
        yield value
    elif path[0] == "*":
        for item in value if isinstance(value, list) else []:
            yield from _values(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _values(value[path[0]], path[1:])


def _find_circular(defined: Definitions, followers: Followers) -> set[str]:
    """Return the resources that would be on a cycle, or behind one, if every follower required all
    of its groups: only these can require their followers."""
    behind = _behind(followers, defined)
    graph: dict[str | _Group, list[str | _Group]] = {
        name: [one for one in defined[name].requires if one in behind] for name in behind
    }
    for name, groups in followers.items():
        graph[name] += groups
    for group in _all_groups(followers):
        graph[group] = [one for one in group.names if one in behind]
    acyclic = set(sort_topologically(graph))
    return {name for name in behind if name not in acyclic}


def _behind(names: Iterable[str], defined: Definitions) -> dict[str, None]:
    """Return these resources and those that require one of them, through any others."""
    required_by = _invert(defined)
    found, pending = dict.fromkeys(names), [*names]
    while pending:
        for other in required_by.get(pending.pop(), ()):
            if other not in found:
                found[other] = None
                pending.append(other)
    return found


def _invert(defined: Definitions) -> dict[str, list[str]]:
    required_by: dict[str, list[str]] = {}
    for name, one in defined.items():
        for required in one.requires:
            required_by.setdefault(required, []).append(name)
    return required_by


@dataclass(slots=True)
class _CircularSearch:
    """Which resources that are followed require a resource, among those of `_find_circular`.

    Sets of followed resources are the bits of an integer: they are computed once for all resources,
    each from those that require it. bits: of the followed resources. names: by number of the bit.
    behind: those that require a resource through references. through: by bit, those behind the
    followers that were added to a resource, as far as they were known then. extended: the resources
    with such.
    """

    defined: Definitions
    bits: Mapping[str, int]
    names: list[str]
    behind: Mapping[str, int]
    masks: Mapping[_Group, int]
    through: dict[int, int] = field(default_factory=dict)
    extended: int = 0
    steps: int = 0

    @classmethod
    def build(
        cls, defined: Definitions, followers: Followers, circular: Collection[str]
    ) -> "_CircularSearch | None":
        """Return None if resources require each other through references."""
        groups = _all_groups(followers)
        followed = {name for group in groups for name in group.names if name in circular}
        names = [name for name in defined if name in followed]
        bits = {name: 1 << number for number, name in enumerate(names)}
        requires = {
            name: [one for one in defined[name].requires if one in circular]
            for name in defined
            if name in circular
        }
        order = sort_topologically(requires)
        if len(order) < len(requires):
            return None
        behind = dict.fromkeys(order, 0)
        for name in reversed(order):
            mask = behind[name] | bits.get(name, 0)
            for one in requires[name]:
                behind[one] |= mask
        masks = {
            group: _union(bits[name] for name in group.names if name in bits) for group in groups
        }
        return cls(defined, bits, names, behind, masks)

    def add(self, name: str, groups: Iterable[_Group]) -> set[str]:
        """Let a resource come after those of the groups that do not require it; return these."""
        wanted = _union(self.masks[group] for group in groups) & ~self.bits.get(name, 0)
        behind = self._all_behind(name, wanted)
        left = wanted & ~behind
        behind |= self.bits.get(name, 0)
        found = set()
        for number in _numbers(left):
            found.add(self.names[number])
            bit = 1 << number
            if behind:
                self.through[bit] = self.through.get(bit, 0) | behind
        if behind:
            self.extended |= left
        return found

    def _all_behind(self, name: str, wanted: int) -> int:
        """Return the resources that require one; if all of `wanted` do, perhaps only some."""
        found, seen = self.behind[name] | self.through.get(self.bits.get(name, 0), 0), 0
        while (wanted & ~found) and (pending := found & self.extended & ~seen):
            for number in _numbers(pending):
                found |= self.through[1 << number]
                self.steps += 1
            seen |= pending
            if self.steps > MAX_STEPS:
                known = self.defined[name]
                reason = f'resources of types such as "{known.type}" require each other'
                raise TooManyDependencies(
                    known.place, f"The dependencies that types add are too many to order: {reason}."
                )
        return found


def _union(masks: Iterable[int]) -> int:
    found = 0
    for one in masks:
        found |= one
    return found


def _numbers(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    text = bin(mask)
    last = len(text) - 1
    at = text.rfind("1")
    while at > 1:
        yield last - at
        at = text.rfind("1", 0, at)
