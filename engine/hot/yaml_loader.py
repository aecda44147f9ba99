"""YAML as Heat templates are written: core types only, dates stay text, no key twice.

PyYAML's C parser recurses without a guard (a few kilobytes of ``[`` crash the process), keeps the
last of two equal keys and lets merge keys multiply without bound; each is stopped here.
"""

import re
from collections.abc import Callable
from typing import Any

import yaml

CORE = ("null", "bool", "int", "float", "str", "seq", "map")
MERGE = "tag:yaml.org,2002:merge"
TAG = "tag:yaml.org,2002:"
BOOL, STR, MAP, SEQ = f"{TAG}bool", f"{TAG}str", f"{TAG}map", f"{TAG}seq"

#: More brackets, or a longer row of block indicators, than any honest template has; beyond these
#: the depth is counted by reading events, which is slow but does not recurse.
MANY_BRACKETS = 2_000
LONG_ROW = re.compile(r"^[ \t\-?:]{1000}", re.MULTILINE)


#: A quoted text where one can only begin a token: behind a bracket or a comma.
_QUOTED = r"""(?:\s*(?:"[^"\\\[\]{}]*"|'[^'\[\]{}]*'))?"""
#: Brackets that surely close each other: nothing between them can hide the second from a parser
#: that takes the first for one (quotes in the midst of a token, comments, tags).
PAIR = re.compile(rf"""[\[{{]{_QUOTED}(?:[^][{{}}'"#!,]|,{_QUOTED})*[\]}}]""")

#: The longest number, in characters. No number that JSON can say is as long.
LONGEST_NUMBER = 1_000


class Twin(Exception):
    """A key that is there twice in one map."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class TemplateLoader(yaml.CSafeLoader):
    """Loads one document; raises Twin, yaml.YAMLError, ValueError or RecursionError."""

    pair_budget: int = 10_000

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.flat: set[int] = set()
        self.built: dict[int, Any] = {}

    def get_single_data(self) -> Any:
        node = self.get_single_node()
        return None if node is None else self.build(node)

    def build(self, node: yaml.Node) -> Any:
        """What construct_object gives, in a quarter of its time; nodes that are shared stay so."""
        kind, tag = type(node), node.tag
        if kind is yaml.ScalarNode:
            if tag == STR:
                return node.value
            if tag in SCALARS:
                return SCALARS[tag](self, node)  # type: ignore[arg-type]
        elif id(node) in self.built:
            return self.built[id(node)]
        elif kind is yaml.MappingNode and tag == MAP:
            return self._build_map(node)  # type: ignore[arg-type]
        elif kind is yaml.SequenceNode and tag == SEQ:
            items: list[Any] = []
            self.built[id(node)] = items
            items += map(self.build, node.value)
            return items
        return self.construct_object(node, deep=True)

    def _build_map(self, node: yaml.MappingNode) -> dict[Any, Any]:
        whole: dict[Any, Any] = {}
        self.built[id(node)] = whole
        self.flatten_mapping(node)
        for key, value in node.value:
            if type(key) is not yaml.ScalarNode:
                where, found = "while constructing a mapping", "found unhashable key"
                raise yaml.constructor.ConstructorError(
                    where, node.start_mark, found, key.start_mark
                )
            whole[self.build(key)] = self.build(value)
        return whole

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check for twins, then put what merge keys name in front; entries of its own win."""
        if id(node) in self.flat:
            return
        self.flat.add(id(node))
        merges = False
        for key, _ in node.value:
            if key.tag == STR:
                continue
            merges = merges or key.tag == MERGE
            if key.tag == BOOL:  # the `on:` of a rule, which YAML 1.1 takes for `true:`
                key.tag = STR
        refuse_twins(node)
        if not merges:
            return
        own = [(key, value) for key, value in node.value if key.tag != MERGE]
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        for target in reversed(merge_targets(node)):
            self.flatten_mapping(target)
            self.pair_budget -= len(target.value)
            if self.pair_budget < 0:
                raise yaml.constructor.ConstructorError(
                    None, None, "merge keys bring in too many entries", node.start_mark
                )
            merged.extend(target.value)
        node.value = merged + own


#: How scalars of the core types are read, by their tag.
SCALARS: dict[str | None, Callable[[TemplateLoader, yaml.ScalarNode], Any]] = {}


def merge_targets(node: yaml.MappingNode) -> list[yaml.MappingNode]:
    """Return the maps that the merge keys of a map name, the strongest first."""
    targets: list[yaml.MappingNode] = []
    for key, value in node.value:
        if key.tag != MERGE:
            continue
        for each in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if not isinstance(each, yaml.MappingNode):
                raise yaml.constructor.ConstructorError(
                    "while reading a merge key", node.start_mark, "expected a map", each.start_mark
                )
            targets.append(each)
    return targets


def refuse_twins(node: yaml.MappingNode) -> None:
    pairs = node.value
    if len(pairs) < 2:
        return
    keys = [key.value for key, _ in pairs if type(key) is yaml.ScalarNode]
    if len(set(keys)) == len(keys):
        return
    seen: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in seen:
                raise Twin(key.value)
            seen.add((key.tag, key.value))


def find_twin(text: str) -> tuple[str, int, int] | None:
    """Return (place, line, line of the first) of the first key given twice, if YAML can tell."""
    try:
        root = yaml.compose(text, Loader=TemplateLoader)
        return _twin_below(root, "", set()) if root is not None else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _twin_below(node: yaml.Node, place: str, seen: set[int]) -> tuple[str, int, int] | None:
    if id(node) in seen:
        return None
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        each = (_twin_below(item, f"{place}[{i}]", seen) for i, item in enumerate(node.value))
        return next((found for found in each if found), None)
    if not isinstance(node, yaml.MappingNode):
        return None
    lines: dict[tuple[str, str], int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        here = f"{place}.{key.value}" if place else key.value
        line = key.start_mark.line + 1
        if (first := lines.get((key.tag, key.value))) is not None:
            return here, line, first
        lines[key.tag, key.value] = line
        if (found := _twin_below(value, here, seen)) is not None:
            return found
    return None


def few_are_open(text: str, most: int) -> bool:
    """Whether so many brackets at most can be open at one place; False where that is not plain.

    Each round has a word in place of the innermost pairs, and so takes one level of depth.
    """
    rounds = 0
    while text.count("[") + text.count("{") + rounds > most:
        left = PAIR.sub("x", text)
        if len(left) == len(text):
            return False
        text, rounds = left, rounds + 1
    return True


def nesting_is_safe(text: str, max_depth: int) -> bool:
    """Whether the text may be given to a parser that recurses in C."""
    if few_are_open(text, MANY_BRACKETS) and not LONG_ROW.search(text):
        return True
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > max_depth:
                    return False
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except (yaml.YAMLError, ValueError):
        pass  # the real reading will fail at the same place, and say why
    return True


def _short(construct: Callable[[Any, yaml.ScalarNode], Any]) -> Callable[..., Any]:
    """Have long numbers refused: ``1:59:59...`` takes the square of its length to work out.

    And what an explicit tag says of a text that is none: ``!!int ''``, ``!!bool x``.
    """

    def constructed(loader: TemplateLoader, node: yaml.ScalarNode) -> Any:
        said = f"a number has {len(node.value)} characters; write it as text"
        if len(node.value) <= LONGEST_NUMBER:
            try:
                return construct(loader, node)
            except (ValueError, IndexError, KeyError, OverflowError):
                said = f"this is not of the kind {node.tag.removeprefix(TAG)}"
        raise yaml.constructor.ConstructorError(None, None, said, node.start_mark)

    return constructed


def _core_only() -> None:
    """Keep the constructors of the core types; dates are read as the text they are."""
    core: dict[str | None, Any] = {
        TAG + name: yaml.CSafeLoader.yaml_constructors[TAG + name] for name in CORE
    }
    core[TAG + "timestamp"] = core[TAG + "str"]
    for kind in ("int", "float", "bool"):
        core[TAG + kind] = _short(core[TAG + kind])
    everything: dict[str | None, Any] = yaml.CSafeLoader.yaml_constructors
    core[None] = everything[None]
    TemplateLoader.yaml_constructors = core
    SCALARS.update({tag: core[tag] for tag in core if tag not in (None, MAP, SEQ)})


_core_only()
