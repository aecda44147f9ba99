"""YAML as Heat reads it: core types only, dates stay strings, keys are text, and of equal keys the
last one counts.

Documents are built from the events of libyaml's parser. PyYAML's own node-based construction takes
twice the time, recurses without a guard (a few kilobytes of `[` crash the process), and lets merge
keys multiply without bound.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

CORE = ("null", "bool", "int", "float", "str")
TAG = "tag:yaml.org,2002:"
MERGE, STR, MAP, SEQ = f"{TAG}merge", f"{TAG}str", f"{TAG}map", f"{TAG}seq"

#: Maximum length of a number, in characters. No number that JSON can represent is longer.
MAX_NUMBER_LENGTH = 1_000


class NestedTooDeep(Exception):
    """Collections are nested deeper than allowed."""


class MergeKey:
    """The value of a `<<` scalar. Valid only as a key; anywhere else it is refused later as a value
    of an unknown kind.
    """


MERGE_KEY = MergeKey()
NO_KEY, UNREAD = object(), object()


def load_yaml(text: str, max_depth: int, max_merged: int) -> tuple[Any, bool]:
    """Return the content of the only document in the text, None if there is none; and whether a key
    is given twice or is not text.

    max_depth: maximum nesting of collections. max_merged: maximum number of entries that merge keys
    may add. Collections shared by aliases are shared in the result. Raises NestedTooDeep,
    yaml.YAMLError or ValueError.
    """
    loader = yaml.CSafeLoader(text)
    try:
        document = DocumentReader(loader, max_depth, max_merged)
        return document.read(), document.irregular
    finally:
        loader.dispose()


class DocumentReader:
    """State of one document while its events are read. irregular: see `load_yaml`."""

    def __init__(self, loader: yaml.CSafeLoader, max_depth: int, max_merged: int) -> None:
        self.loader = loader
        self.resolve: Callable[..., Any] = loader.resolve
        self.max_depth = max_depth
        self.may_merge = max_merged
        self.anchors: dict[str, Any] = {}
        self.anchored: dict[str, Any] = {}  # start marks of the anchors
        self.plain: dict[str, Any] = {}  # values of plain scalars by text
        self.open: list[tuple[Any, Any]] = []  # open collections with their current key
        self.merging: list[dict[Any, Any]] = []  # open maps that have a merge key
        self.irregular = False

    def read(self) -> Any:
        """Add each value to its parent: as a list item, as a key, or as the value of a key."""
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
                self.check_single_document(event, top)
                continue
            value = READ[kind](self, event)
            if type(here) is list:
                here.append(value)
            elif key is NO_KEY:
                plain = type(value) is str and value not in here
                key = value if plain else self.key(event, value, here)
                continue
            else:
                here[key] = value
                key = NO_KEY
            if kind in STARTS:
                self.open.append((here, key))
                here, key = value, NO_KEY
        return top[0] if top else None

    def scalar(self, event: Any) -> Any:
        value = self.scalar_value(event)
        if event.anchor is not None:
            self.set_anchor(event, value)
        return value

    def scalar_value(self, event: Any) -> Any:
        value = event.value
        if event.tag is not None:
            tag = event.tag if event.tag != "!" else self.resolve_tag(event)
            value = self.construct(tag, event)
        elif event.implicit[0]:
            value = self.plain.get(value, UNREAD)
            if value is UNREAD:
                value = self.plain[event.value] = self.construct(self.resolve_tag(event), event)
        return value

    def resolve_tag(self, event: Any) -> str:
        """Return the tag of a scalar without an explicit tag."""
        tag: str = self.resolve(yaml.ScalarNode, event.value, event.implicit)
        return tag

    def construct(self, tag: str, event: Any) -> Any:
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

    def start_collection(self, event: Any) -> Any:
        """Create the collection that starts with this event; later events fill it."""
        if len(self.open) >= self.max_depth:
            raise NestedTooDeep
        value: Any = {} if type(event) is yaml.MappingStartEvent else []
        own = MAP if type(value) is dict else SEQ
        if event.tag not in (None, "!", own):
            self.refuse(event, f"could not determine a constructor for the tag {event.tag!r} here")
        if event.anchor is not None:
            self.set_anchor(event, value)
        return value

    def alias(self, event: Any) -> Any:
        if event.anchor not in self.anchors:
            message = f"found undefined alias {event.anchor!r}"
            raise ComposerError(None, None, message, event.start_mark)
        return self.anchors[event.anchor]

    def set_anchor(self, event: Any, value: Any) -> None:
        if event.anchor in self.anchors:
            message = f"found duplicate anchor {event.anchor!r}"
            raise ComposerError(message, self.anchored[event.anchor], "again", event.start_mark)
        self.anchors[event.anchor] = value
        self.anchored[event.anchor] = event.start_mark

    def key(self, event: Any, value: Any, here: dict[Any, Any]) -> Any:
        """Return the map key of a scalar, and record duplicate keys and merge keys.

        YAML 1.1 reads `on` as a boolean; as a key it keeps its text.
        """
        if isinstance(value, dict | list):
            self.refuse(
                event, "found a key that is a list or a map", "while constructing a mapping"
            )
        if value is MERGE_KEY:
            if value not in here:
                self.merging.append(here)
                return value
            self.irregular = True
            return MergeKey()  # the map has both
        key, is_text = key_text(event, value)
        self.irregular = self.irregular or not is_text or key in here
        return key

    def merge(self, here: dict[Any, Any], event: Any) -> None:
        """Insert the entries of the merge keys before the map's own entries, which take
        precedence.
        """
        own = {key: value for key, value in here.items() if type(key) is not MergeKey}
        merged = [value for key, value in here.items() if type(key) is MergeKey]
        here.clear()
        for named in merged:
            for target in reversed(named if type(named) is list else [named]):
                self.merge_one(here, target, event)
        here.update(own)

    def merge_one(self, here: dict[Any, Any], target: Any, event: Any) -> None:
        if type(target) is not dict:
            self.refuse(event, "expected a map", "while reading a merge key")
        if target is here or any(target is each for each, _ in self.open):
            self.refuse(event, "a map cannot merge itself", "while reading a merge key")
        self.may_merge -= len(target)
        if self.may_merge < 0:
            self.refuse(event, "merge keys add too many entries")
        here.update(target)

    def check_single_document(self, event: Any, before: list[Any]) -> None:
        where = event.start_mark
        if type(event) is yaml.DocumentStartEvent and before:
            message = "expected a single document in the stream"
            raise ComposerError(message, None, "but found another document", where)

    def refuse(self, event: Any, message: str, context: str | None = None) -> NoReturn:
        raise ConstructorError(context, event.start_mark, message, event.start_mark)


#: Reader of each event that starts a value.
READ: Mapping[type, Callable[[DocumentReader, Any], Any]] = {
    yaml.ScalarEvent: DocumentReader.scalar,
    yaml.AliasEvent: DocumentReader.alias,
    yaml.MappingStartEvent: DocumentReader.start_collection,
    yaml.SequenceStartEvent: DocumentReader.start_collection,
}
STARTS = frozenset({yaml.MappingStartEvent, yaml.SequenceStartEvent})
ENDS = frozenset({yaml.MappingEndEvent, yaml.SequenceEndEvent})


def key_text(event: Any, value: Any) -> tuple[str, bool]:
    """Return a scalar as a key, and whether it is text. A number has the form that it has in JSON,
    as in Heat.
    """
    if type(value) is str:
        return value, True
    if type(value) is bool and type(event) is yaml.ScalarEvent:
        return event.value, True
    return json.dumps(value), False


def _limit_length(construct: Callable[[Any, yaml.ScalarNode], Any]) -> Callable[..., Any]:
    """Wrap a constructor so that it refuses long numbers and invalid explicit tags.

    `1:59:59...` takes time quadratic in its length. Invalid tags are such as `!!int ''` or `!!bool
    x`.
    """

    def construct_checked(loader: yaml.CSafeLoader, node: yaml.ScalarNode) -> Any:
        message = f"a number has {len(node.value)} characters; write it as text"
        if len(node.value) <= MAX_NUMBER_LENGTH:
            try:
                return construct(loader, node)
            except (ValueError, IndexError, KeyError, OverflowError):
                message = f"this is not of the kind {node.tag.removeprefix(TAG)}"
        raise ConstructorError(None, None, message, node.start_mark)

    return construct_checked


def _core() -> dict[str, Callable[[yaml.CSafeLoader, yaml.ScalarNode], Any]]:
    """Return the constructors of scalars by tag; dates and `=` are strings."""
    core: dict[str, Any] = {
        TAG + name: yaml.CSafeLoader.yaml_constructors[TAG + name] for name in CORE
    }
    core[TAG + "timestamp"] = core[TAG + "value"] = core[STR]
    for kind in ("int", "float", "bool"):
        core[TAG + kind] = _limit_length(core[TAG + kind])
    return core


SCALARS = _core()
