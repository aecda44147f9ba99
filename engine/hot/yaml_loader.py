"""YAML as Heat templates are written: core types only, dates stay text, no key twice.

PyYAML's C parser recurses without a guard (a few kilobytes of ``[`` crash the process), keeps the
last of two equal keys and lets merge keys multiply without bound; each is stopped here.
"""

import re
from typing import Any

import yaml

CORE = ("null", "bool", "int", "float", "str", "seq", "map")
MERGE = "tag:yaml.org,2002:merge"
TAG = "tag:yaml.org,2002:"
BOOL, STR = f"{TAG}bool", f"{TAG}str"

#: More brackets, or a longer row of block indicators, than any honest template has; beyond these
#: the depth is counted by reading events, which is slow but does not recurse.
MANY_BRACKETS = 2_000
LONG_ROW = re.compile(r"^[ \t\-?:]{1000}", re.MULTILINE)


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

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check for twins, then put what merge keys name in front; entries of its own win."""
        if id(node) in self.flat:
            return
        self.flat.add(id(node))
        for key, _ in node.value:
            if key.tag == BOOL:  # the `on:` of a rule, which YAML 1.1 takes for `true:`
                key.tag = STR
        refuse_twins(node)
        if not any(key.tag == MERGE for key, _ in node.value):
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
    keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
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


def nesting_is_safe(text: str, max_depth: int) -> bool:
    """Whether the text may be given to a parser that recurses in C."""
    if text.count("[") + text.count("{") <= MANY_BRACKETS and not LONG_ROW.search(text):
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


def _core_only() -> None:
    """Keep the constructors of the core types; dates are read as the text they are."""
    core: dict[str | None, Any] = {
        TAG + name: yaml.CSafeLoader.yaml_constructors[TAG + name] for name in CORE
    }
    core[TAG + "timestamp"] = core[TAG + "str"]
    everything: dict[str | None, Any] = yaml.CSafeLoader.yaml_constructors
    core[None] = everything[None]
    TemplateLoader.yaml_constructors = core


_core_only()
