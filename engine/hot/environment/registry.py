"""The resource registry: aliases of resource types and the order in which they are searched.

As in Heat: the user's entries precede the operator's, entries of one resource precede entries for
all, and then alphabetical order applies, so that `OS::*` precedes `OS::Nova::Server`. Entries that
lead to no type are skipped.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.hot.syntax.globs import matches_glob
from engine.hot.syntax.keyed_names import other_names
from engine.words import Restriction

TEMPLATE_FILES = (".yaml", ".template")
ADDRESSES = ("http://", "https://")
#: Maximum length of a chain of aliases; longer ones count as circular, because each entry may
#: produce another name (`A*: AA*`).
MAX_ALIASES = 30
#: Maximum length of a name in a chain, in characters.
MAX_NAME_LENGTH = 4096


def is_template_file(type_name: str) -> bool:
    """Return whether a type is a nested template, by the suffix of its file name or URL."""
    return type_name.endswith(TEMPLATE_FILES)


def pattern_covers(pattern: str, name: str) -> bool:
    """Return whether a name, or a prefix with `*`, covers this name."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """One entry. path: its keys in the registry; the last is a type name, or a prefix with `*`.
    target: a type, a template file, or a prefix with `*`.
    """

    path: tuple[str, ...]
    target: str
    of_operator: bool = False

    @property
    def name(self) -> str:
        return self.path[-1]

    def target_of(self, name: str) -> str:
        """Return the target for a name that the entry covers."""
        if self.target.endswith("*"):
            return self.target[:-1] + name[len(self.name) - 1 :]
        return self.target


@dataclass(frozen=True, slots=True)
class ResolvedType:
    """The end of a chain of aliases: a type or a template file. by: the entry that led to it, if
    any.
    """

    type: str
    by: RegistryEntry | None = None


CIRCLE_REMEDY = "Map one of the types to a template, or to a type that the server has."


class CircularAlias(Exception):
    """Aliases form a cycle; the message has the chain."""


@dataclass(slots=True)
class _Search:
    """chain: names of the current chain. dead_ends: names that lead to no type."""

    resource: str
    types: Container[str]
    without: RegistryEntry | None
    chain: list[str] = field(default_factory=list)
    dead_ends: set[str] = field(default_factory=set)

    def enter(self, name: str) -> None:
        if name in self.chain:
            raise CircularAlias(" -> ".join((*self.chain[self.chain.index(name) :], name)))
        full = MAX_ALIASES in (len(self.chain), len(self.dead_ends))
        if full or len(name) > MAX_NAME_LENGTH:
            shown = (one[:100] for one in (*self.chain, name)[:4])
            raise CircularAlias(" -> ".join((*shown, "...")))
        self.chain.append(name)

    def leave(self, name: str) -> None:
        self.chain.pop()
        self.dead_ends.add(name)


def find_label(labels: Sequence[tuple[str, str]], resource: str) -> str:
    """The label of a resource; "": none. labels: by globs of names. The last one that matches
    wins; the exact name takes precedence."""
    exact = [label for pattern, label in labels if pattern == resource]
    matching = exact or [label for pattern, label in labels if matches_glob(resource, pattern)]
    return matching[-1] if matching else ""


@dataclass(frozen=True, slots=True)
class ResourceRegistry:
    """mapped: entries for all resources, by name. by_resource: entries for one resource, by its
    exact name. removed: patterns that a null removed: the operator's entries in a user's registry,
    resource types in the operator's. restrictions: restricted actions by globs of resource names.
    labels: requested labels of workers, by the same. requested_labels: place and label, also of
    resources of nested stacks.
    operator: the operator's registry; None in the operator's own. stars: lengths of the prefixes in
    `mapped`.
    """

    mapped: Mapping[str, RegistryEntry] = field(default_factory=dict)
    by_resource: Mapping[str, Mapping[str, RegistryEntry]] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    restrictions: tuple[tuple[str, frozenset[Restriction]], ...] = ()
    operator: "ResourceRegistry | None" = None
    stars: frozenset[int] = frozenset()
    labels: tuple[tuple[str, str], ...] = ()
    requested_labels: tuple[tuple[str, str], ...] = ()

    def label_of(self, resource: str) -> str:
        """The label of workers that the environment requests for a resource; "": none."""
        return find_label(self.labels, resource)

    def restrictions_of(self, resource: str) -> frozenset[Restriction]:
        """Return the restricted actions of a resource, of all patterns that match its name."""
        if not self.restrictions:
            return frozenset()
        matching = [
            kinds for pattern, kinds in self.restrictions if matches_glob(resource, pattern)
        ]
        return frozenset().union(*matching)

    def own_name(self, resource: str) -> str | None:
        """Return the name by which the registry has entries for this resource; None: it has none.
        `web-a` and `web` mean `web["a"]`, too, if there are none for that."""
        if not self.by_resource:
            return None
        names = (resource, *other_names(resource))
        return next((one for one in names if one in self.by_resource), None)

    def find(
        self, name: str, resource: str, types: Container[str], without: RegistryEntry | None = None
    ) -> ResolvedType | None:
        """Return the type that a name leads to for a resource; None if there is none.

        types: the installed types. without: an entry to ignore. Raises CircularAlias.
        """
        return self._find(name, _Search(resource, types, without))

    def _find(self, name: str, search: "_Search") -> ResolvedType | None:
        if is_template_file(name):
            return ResolvedType(name)
        search.enter(name)
        for entry in self._entries(name, search.resource):
            after = entry.target_of(name)
            if entry == search.without or after == name or after in search.dead_ends:
                continue
            if is_template_file(after):
                return ResolvedType(after, entry)
            registry = self.operator if entry.of_operator and self.operator else self
            found = registry._find(after, search)
            if found is not None:
                return found if found.by else ResolvedType(found.type, entry)
        search.leave(name)
        return ResolvedType(name) if name in search.types and not self.is_disabled(name) else None

    def _entries(self, name: str, resource: str) -> Iterator[RegistryEntry]:
        """Yield all entries that cover a name, in order of precedence."""
        own = self.by_resource.get(resource, {}).get(name)
        if own is not None:
            yield own
        stars = (f"{name[:length]}*" for length in self.stars if length <= len(name))
        yield from (self.mapped[key] for key in sorted({name, *stars}) if key in self.mapped)
        if self.operator is not None:
            for entry in self.operator._entries(name, resource):
                if not any(pattern_covers(pattern, entry.name) for pattern in self.removed):
                    yield entry

    def used_entry(self, name: str) -> tuple[str, str] | None:
        """Return the name and the target that Heat adds to an environment when a resource has used
        this name: of a template file, and of a name that a prefix with `*` covers. None: the
        environment has the name already, or no entry that covers it."""
        if is_template_file(name):
            return None if name in self.mapped else (name, name)
        stars = (f"{name[:length]}*" for length in self.stars if length <= len(name))
        found = next((self.mapped[key] for key in sorted(stars) if key in self.mapped), None)
        return None if found is None or name in self.mapped else (name, found.target_of(name))

    def is_disabled(self, name: str) -> bool:
        """Return whether the operator removed a type."""
        registry = self.operator or self
        return any(pattern_covers(pattern, name) for pattern in registry.removed)
