"""Names of resource types by other names, and the order in which they are looked for.

What the user maps goes before what the operator maps, what is said of one resource before what is
said of all, and then the alphabet decides, so that ``OS::*`` goes before ``OS::Nova::Server``. What
leads to no type is passed over.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from engine.hot.globs import matches
from engine.words import Restriction

TEMPLATE_FILES = (".yaml", ".template")
ADDRESSES = ("http://", "https://")
#: On the way from one name: more are a circle, though each may be another name (``A*: AA*``).
MOST_ALIASES = 30
#: Characters of a name on the way.
LONGEST_NAME = 4096


def is_template_file(type_name: str) -> bool:
    """Whether a type is a nested template, by the name of its file or address."""
    return type_name.endswith(TEMPLATE_FILES)


def covers(pattern: str, name: str) -> bool:
    """Whether a name, or one with a star at its end, means this one."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


@dataclass(frozen=True, slots=True)
class Mapped:
    """One entry. path: its keys in the registry, the last is the name of a type, or the beginning
    of names with a star. target: a type, a template's file, or with a star as well."""

    path: tuple[str, ...]
    target: str
    of_operator: bool = False

    @property
    def name(self) -> str:
        return self.path[-1]

    def leads(self, name: str) -> str:
        """Where it leads from a name that it covers."""
        if self.target.endswith("*"):
            return self.target[:-1] + name[len(self.name) - 1 :]
        return self.target


@dataclass(frozen=True, slots=True)
class Found:
    """The end of a chain: a type, or a template's file. by: the entry that led there, if any."""

    type: str
    by: Mapped | None = None


class CircularAlias(Exception):
    """Aliases that lead back to themselves; the text shows the chain."""


@dataclass(slots=True)
class _Search:
    """chain: the names on the way. nowhere: those that lead to nothing."""

    resource: str
    types: Container[str]
    without: Mapped | None
    chain: list[str] = field(default_factory=list)
    nowhere: set[str] = field(default_factory=set)

    def enter(self, name: str) -> None:
        if name in self.chain:
            raise CircularAlias(" -> ".join((*self.chain[self.chain.index(name) :], name)))
        full = MOST_ALIASES in (len(self.chain), len(self.nowhere))
        if full or len(name) > LONGEST_NAME:
            shown = (one[:100] for one in (*self.chain, name)[:4])
            raise CircularAlias(" -> ".join((*shown, "...")))
        self.chain.append(name)

    def leave(self, name: str) -> None:
        self.chain.pop()
        self.nowhere.add(name)


@dataclass(frozen=True, slots=True)
class Registry:
    """mapped: entries for all resources, by name. by_resource: entries for one, by its exact name.

    removed: what null took away: of the operator's entries in a user's registry, of the types
    themselves in the operator's. restrictions: what may not be done, by globs on resource names.
    operator: the operator's registry; None in the operator's own. stars: how many characters stand
    before the stars in `mapped`.
    """

    mapped: Mapping[str, Mapped] = field(default_factory=dict)
    by_resource: Mapping[str, Mapping[str, Mapped]] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    restrictions: tuple[tuple[str, frozenset[Restriction]], ...] = ()
    operator: "Registry | None" = None
    stars: frozenset[int] = frozenset()

    def restricted(self, resource: str) -> frozenset[Restriction]:
        """What may not be done to a resource, by all patterns that match its name."""
        if not self.restrictions:
            return frozenset()
        said = [kinds for pattern, kinds in self.restrictions if matches(resource, pattern)]
        return frozenset().union(*said)

    def find(
        self, name: str, resource: str, types: Container[str], without: Mapped | None = None
    ) -> Found | None:
        """Where a type's name leads for a resource; None when that is nowhere.

        types: those that there are. without: an entry to look past. Raises CircularAlias.
        """
        return self._find(name, _Search(resource, types, without))

    def _find(self, name: str, search: "_Search") -> Found | None:
        if is_template_file(name):
            return Found(name)
        search.enter(name)
        for entry in self._entries(name, search.resource):
            after = entry.leads(name)
            if entry == search.without or after == name or after in search.nowhere:
                continue
            if is_template_file(after):
                return Found(after, entry)
            registry = self.operator if entry.of_operator and self.operator else self
            found = registry._find(after, search)
            if found is not None:
                return found if found.by else Found(found.type, entry)
        search.leave(name)
        return Found(name) if name in search.types and not self.is_disabled(name) else None

    def _entries(self, name: str, resource: str) -> Iterator[Mapped]:
        """All that speak of a name, the strongest first."""
        own = self.by_resource.get(resource, {}).get(name)
        if own is not None:
            yield own
        stars = (f"{name[:length]}*" for length in self.stars if length <= len(name))
        yield from (self.mapped[key] for key in sorted({name, *stars}) if key in self.mapped)
        if self.operator is not None:
            for entry in self.operator._entries(name, resource):
                if not any(covers(pattern, entry.name) for pattern in self.removed):
                    yield entry

    def is_disabled(self, name: str) -> bool:
        """Whether the operator took a type away."""
        registry = self.operator or self
        return any(covers(pattern, name) for pattern in registry.removed)
