"""YAML as Heat templates are written: core types only, dates stay text, no key twice.

Documents are put together from the events of libyaml's parser. PyYAML's own way, by nodes, takes
twice the time, recurses without a guard (a few kilobytes of ``[`` crash the process), keeps the
last of two equal keys and lets merge keys multiply without bound.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

CORE = ("null", "bool", "int", "float", "str")
TAG = "tag:yaml.org,2002:"
MERGE, STR, MAP, SEQ = f"{TAG}merge", f"{TAG}str", f"{TAG}map", f"{TAG}seq"

#: The longest number, in characters. No number that JSON can say is as long.
LONGEST_NUMBER = 1_000


class Twin(Exception):
    """A key that is there twice in one map."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class TooDeep(Exception):
    """More collections inside of each other than are allowed."""


class MergeKey:
    """What ``<<`` is read as; anywhere but before a colon it is refused as a value of no kind."""


MERGE_KEY = MergeKey()
NO_KEY, UNREAD = object(), object()


def load(text: str, max_depth: int, max_merged: int) -> Any:
    """Return what the one document of a text says; None if there is none.

    ``max_depth`` counts collections inside of each other, ``max_merged`` the entries that merge
    keys bring in. Collections that are shared by aliases are shared in the result.
    Raises TooDeep, Twin, yaml.YAMLError or ValueError.
    """
    loader = yaml.CSafeLoader(text)
    try:
        return _Document(loader, max_depth, max_merged).read()
    finally:
        loader.dispose()


class _Document:
    """What is known of a document while its events are read."""

    def __init__(self, loader: yaml.CSafeLoader, max_depth: int, max_merged: int) -> None:
        self.loader = loader
        self.resolve: Callable[..., Any] = loader.resolve
        self.max_depth = max_depth
        self.may_merge = max_merged
        self.anchors: dict[str, Any] = {}
        self.anchored: dict[str, Any] = {}  # where
        self.plain: dict[str, Any] = {}  # what plain scalars that were met say
        self.open: list[tuple[Any, Any]] = []  # collections, each with the key it is at
        self.merging: list[dict[Any, Any]] = []  # open maps that have a merge key
        self.twin: str | None = None

    def read(self) -> Any:
        """Place each value where it belongs: in a list, as a key, or as the value of one."""
        get, merging = self.loader.get_event, self.merging
        top: list[Any] = []
        here: Any = top
        key: Any = NO_KEY
        while type(event := get()) is not yaml.StreamEndEvent:
            kind = type(event)
            if kind in ENDS:
                if merging and merging[-1] is here:
                    self.merge(merging.pop(), event)
                here, key = self.open.pop()
                continue
            if kind not in READ:
                self.check_alone(event, top)
                continue
            made = READ[kind](self, event)
            if type(here) is list:
                here.append(made)
            elif key is NO_KEY:
                plain = type(made) is str and made not in here
                key = made if plain else self.key(event, made, here)
                continue
            else:
                here[key] = made
                key = NO_KEY
            if kind in STARTS:
                self.open.append((here, key))
                here, key = made, NO_KEY
        if self.twin is not None:
            raise Twin(self.twin)
        return top[0] if top else None

    def scalar(self, event: Any) -> Any:
        made = event.value
        if event.tag is not None:
            tag = event.tag if event.tag != "!" else self.resolved(event)
            made = self.constructed(tag, event)
        elif event.implicit[0]:
            made = self.plain.get(made, UNREAD)
            if made is UNREAD:
                made = self.plain[event.value] = self.constructed(self.resolved(event), event)
        if event.anchor is not None:
            self.name(event, made)
        return made

    def resolved(self, event: Any) -> str:
        """The tag of a scalar that does not say it."""
        tag: str = self.resolve(yaml.ScalarNode, event.value, event.implicit)
        return tag

    def constructed(self, tag: str, event: Any) -> Any:
        if tag == STR:
            return event.value
        if tag == MERGE and event.tag is None:
            return MERGE_KEY
        if tag in (MAP, SEQ):
            self.refuse(event, f"expected a {tag.removeprefix(TAG)}, but found a scalar")
        if tag not in SCALARS:
            self.refuse(event, f"could not determine a constructor for the tag {tag!r}")
        node = yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
        return SCALARS[tag](self.loader, node)

    def begun(self, event: Any) -> Any:
        """A new collection, which is filled as events go on."""
        if len(self.open) >= self.max_depth:
            raise TooDeep
        made: Any = {} if type(event) is yaml.MappingStartEvent else []
        own = MAP if type(made) is dict else SEQ
        if event.tag not in (None, "!", own):
            self.refuse(event, f"could not determine a constructor for the tag {event.tag!r} here")
        if event.anchor is not None:
            self.name(event, made)
        return made

    def aliased(self, event: Any) -> Any:
        if event.anchor not in self.anchors:
            said = f"found undefined alias {event.anchor!r}"
            raise ComposerError(None, None, said, event.start_mark)
        return self.anchors[event.anchor]

    def name(self, event: Any, made: Any) -> None:
        if event.anchor in self.anchors:
            said = f"found duplicate anchor {event.anchor!r}"
            raise ComposerError(said, self.anchored[event.anchor], "again", event.start_mark)
        self.anchors[event.anchor] = made
        self.anchored[event.anchor] = event.start_mark

    def key(self, event: Any, made: Any, here: dict[Any, Any]) -> Any:
        """A key that is there already, or no text: ``on``, which YAML 1.1 has for a boolean, is."""
        if isinstance(made, dict | list):
            self.refuse(event, "found unhashable key", "while constructing a mapping")
        key = event.value if type(made) is bool and type(event) is yaml.ScalarEvent else made
        if key in here and self.twin is None:
            self.twin = "<<" if key is MERGE_KEY else str(key)
        if key is MERGE_KEY and key not in here:
            self.merging.append(here)
        return key

    def merge(self, here: dict[Any, Any], event: Any) -> None:
        """Put what a merge key names in front of a map's own entries, which win."""
        named = here.pop(MERGE_KEY)
        targets = named if type(named) is list else [named]
        own = dict(here)
        here.clear()
        for target in reversed(targets):
            if type(target) is not dict:
                self.refuse(event, "expected a map", "while reading a merge key")
            if target is here or any(target is each for each, _ in self.open):
                self.refuse(event, "a map cannot bring in itself", "while reading a merge key")
            self.may_merge -= len(target)
            if self.may_merge < 0:
                self.refuse(event, "merge keys bring in too many entries")
            here.update(target)
        here.update(own)

    def check_alone(self, event: Any, before: list[Any]) -> None:
        where = event.start_mark
        if type(event) is yaml.DocumentStartEvent and before:
            said = "expected a single document in the stream"
            raise ComposerError(said, None, "but found another document", where)

    def refuse(self, event: Any, said: str, context: str | None = None) -> NoReturn:
        raise ConstructorError(context, event.start_mark, said, event.start_mark)


#: How the value that begins with an event is read, and which events begin and end collections.
READ: Mapping[type, Callable[[_Document, Any], Any]] = {
    yaml.ScalarEvent: _Document.scalar,
    yaml.AliasEvent: _Document.aliased,
    yaml.MappingStartEvent: _Document.begun,
    yaml.SequenceStartEvent: _Document.begun,
}
STARTS = frozenset({yaml.MappingStartEvent, yaml.SequenceStartEvent})
ENDS = frozenset({yaml.MappingEndEvent, yaml.SequenceEndEvent})


@dataclass(slots=True)
class _Level:
    """A collection that is being read: a map has lines of its keys, and a key while it has one."""

    place: str
    lines: dict[str, int] | None
    key: str | None = None
    items: int = 0

    def below(self) -> str:
        """The place of the value that comes now."""
        if self.lines is None:
            self.items += 1
            return f"{self.place}[{self.items - 1}]"
        key, self.key = self.key, None
        return f"{self.place}.{key}" if self.place else str(key)


def find_twin(text: str, wanted: str) -> tuple[str, int, int] | None:
    """Return (place, line, line of the first) of a key given twice, if YAML can tell."""
    levels = [_Level("", None)]
    event: Any
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.CollectionEndEvent):
                levels.pop()
            if not isinstance(event, yaml.NodeEvent):
                continue
            level = levels[-1]
            if level.lines is not None and level.key is None:
                level.key = event.value if isinstance(event, yaml.ScalarEvent) else "?"
                if level.key == wanted and wanted in level.lines:
                    return level.below(), line, level.lines[wanted]
                level.lines[level.key] = line
                continue
            place = level.below() if len(levels) > 1 else ""
            if isinstance(event, yaml.CollectionStartEvent):
                is_map = isinstance(event, yaml.MappingStartEvent)
                levels.append(_Level(place, {} if is_map else None))
    except (yaml.YAMLError, ValueError):
        pass
    return None


def _short(construct: Callable[[Any, yaml.ScalarNode], Any]) -> Callable[..., Any]:
    """Have long numbers refused: ``1:59:59...`` takes the square of its length to work out.

    And what an explicit tag says of a text that is none: ``!!int ''``, ``!!bool x``.
    """

    def constructed(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> Any:
        said = f"a number has {len(node.value)} characters; write it as text"
        if len(node.value) <= LONGEST_NUMBER:
            try:
                return construct(loader, node)
            except (ValueError, IndexError, KeyError, OverflowError):
                said = f"this is not of the kind {node.tag.removeprefix(TAG)}"
        raise ConstructorError(None, None, said, node.start_mark)

    return constructed


def _core() -> dict[str, Callable[[yaml.CSafeLoader, yaml.ScalarNode], Any]]:
    """How scalars of the core types are read, by their tag; dates and ``=`` are text."""
    core: dict[str, Any] = {
        TAG + name: yaml.CSafeLoader.yaml_constructors[TAG + name] for name in CORE
    }
    core[TAG + "timestamp"] = core[TAG + "value"] = core[STR]
    for kind in ("int", "float", "bool"):
        core[TAG + kind] = _short(core[TAG + kind])
    return core


SCALARS = _core()
