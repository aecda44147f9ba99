"""An upper bound for the cost of validating data against a JSON schema.

A schema of 2 kB can require days of computation: each level of
``allOf: [{$ref: next}, {$ref: next}]`` doubles the evaluations. The cost is computed as if every
reference were expanded. Recursive schemas are refused.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from operator import add

import jsonschema_rs
import orjson

from engine.words import Json

#: Maximum cost of one validation. A unit takes some 20 nanoseconds: at most half a second.
BUDGET = 4_000_000
#: Maximum number of regular expressions in one schema.
MAX_PATTERNS = 100
#: Maximum nesting of a schema with its references expanded.
MAX_DEPTH = 64
#: Backtracking steps of one regular expression with lookarounds or references to groups.
BACKTRACKING = 2_000
#: Compiled size of a regular expression in bytes -> cost for each character it is matched against.
#: A larger one is refused.
PATTERN_COSTS = ((10_000, 100), (100_000, 1_000), (1_000_000, 10_000))
MAX_PATTERN_SIZE = PATTERN_COSTS[-1][0]
#: Cost of one match with lookarounds or references to groups.
BACKTRACKING_COST = 20_000
FORMAT_COST = 100
#: The format ``regex`` compiles each text, which exceeds the budget of any schema.
REGEX_FORMAT_COST = BUDGET
#: Bytes of a value such as an ``enum`` that are compared in one unit.
BYTES_IN_A_UNIT = 8

#: Keywords whose value is a schema, a list of schemas, or a map of schemas.
SINGLE_SCHEMA_KEYWORDS = frozenset({
    "not", "if", "then", "else", "additionalProperties", "additionalItems", "items", "contains",
    "propertyNames", "contentSchema", "unevaluatedProperties", "unevaluatedItems",
})  # fmt: skip
SCHEMA_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
SCHEMA_MAP_KEYWORDS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies"}
)
#: Schemas that apply only through references.
DEFINITION_KEYWORDS = frozenset({"$defs", "definitions"})
#: Each depends on what the keywords beside it evaluated.
UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
#: References and anchors other than ``$ref`` with a pointer.
REFUSED = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$anchor")

IDS = ("$id", "id")
#: A pointer into the schema itself, without encoded characters.
PLAIN_REFERENCE = re.compile(r"#(/[^%]*)?", re.DOTALL)

PATTERN_OPTIONS = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=BACKTRACKING, size_limit=MAX_PATTERN_SIZE
)


class SchemaRefused(Exception):
    """The cost of the schema is too high or cannot be bounded. The text is the reason."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of data. max_items: items of its longest list or map. characters: with its keys."""

    values: int
    texts: int
    characters: int
    max_items: int


#: The budget must suffice to validate data of this size.
MIN_EXTENT = Extent(values=20, texts=10, characters=200, max_items=10)


@dataclass(frozen=True, slots=True)
class Cost:
    """Units for each value, each character, each text, and each value and item beside it.

    depth: nesting of the schemas.
    """

    value: int = 0
    character: int = 0
    text: int = 0
    item: int = 0
    depth: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.value + other.value, self.character + other.character,
            self.text + other.text, self.item + other.item, max(self.depth, other.depth),
        )  # fmt: skip

    def times(self, factor: int) -> "Cost":
        return Cost(
            self.value * factor, self.character * factor, self.text * factor, self.item * factor,
            self.depth,
        )  # fmt: skip

    def estimate(self, data: Extent) -> int:
        return (
            self.value * data.values
            + self.character * data.characters
            + self.text * data.texts
            + self.item * data.values * data.max_items
        )


def schema_cost(schema: Mapping[str, Json]) -> Cost:
    """Return the cost of a schema. Raises SchemaRefused if even small data exceeds the budget."""
    cost = _Counter(schema).count(schema, 0)
    if cost.estimate(MIN_EXTENT) > BUDGET:
        raise SchemaRefused("costs too much to evaluate, with every $ref expanded")
    return cost


def count_patterns(schema: Json) -> int:
    """Return the number of regular expressions in a schema, without those behind references."""
    count, waiting = 0, [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            inside = one.get("patternProperties")
            count += ("pattern" in one) + (len(inside) if isinstance(inside, dict) else 0)
        waiting.extend(_values(one))
    return count


@dataclass(slots=True)
class _Counter:
    """root: the document of references. counted: costs by identity; None: being computed."""

    root: Mapping[str, Json]
    patterns: int = 0
    counted: dict[int, Cost | None] = field(default_factory=dict)

    def count(self, schema: Json, depth: int) -> Cost:
        if not isinstance(schema, dict):
            return Cost(value=1)
        if depth > MAX_DEPTH:
            raise _too_deep()
        if id(schema) in self.counted:
            known = self.counted[id(schema)]
            if known is None:
                raise SchemaRefused("refers to itself")
            return known
        self.counted[id(schema)] = None
        cost = self._count_keywords(schema, depth)
        cost = replace(cost, depth=cost.depth + 1)
        if cost.depth > MAX_DEPTH:
            raise _too_deep()
        self.counted[id(schema)] = cost
        return cost

    def _count_keywords(self, schema: Mapping[str, Json], depth: int) -> Cost:
        self._check(schema)
        cost = Cost(value=1)
        for keyword, value in schema.items():
            cost += self._own(keyword, value)
            inside = (self.count(one, depth + 1) for one in _inside(keyword, value))
            cost = reduce(add, inside, cost)
        if "$ref" in schema:
            cost += self.count(self._target(schema["$ref"]), depth + 1)
        if UNEVALUATED & schema.keys():
            cost = cost.times(3) + Cost(item=cost.value)
        return cost

    def _check(self, schema: Mapping[str, Json]) -> None:
        for keyword in REFUSED:
            if keyword in schema:
                raise SchemaRefused(f"has {keyword}, which is not supported")
        if schema is not self.root and any(isinstance(schema.get(one), str) for one in IDS):
            raise SchemaRefused("has an $id below its root")

    def _own(self, keyword: str, value: Json) -> Cost:
        """Return the cost of a keyword without the schemas in it."""
        if keyword == "pattern" and isinstance(value, str):
            return self._pattern(value)
        if keyword == "patternProperties" and isinstance(value, dict):
            return reduce(add, map(self._pattern, value), Cost())
        if keyword == "format":
            return Cost(text=REGEX_FORMAT_COST) if value == "regex" else Cost(character=FORMAT_COST)
        if keyword == "uniqueItems":
            return Cost(item=1)
        if keyword in DEFINITION_KEYWORDS:
            # These are compiled even without a reference to them.
            for one in _values(value):
                self.count(one, 1)
            return Cost()
        if keyword in SINGLE_SCHEMA_KEYWORDS | SCHEMA_LIST_KEYWORDS | SCHEMA_MAP_KEYWORDS:
            return Cost(value=1)
        return Cost(value=1 + len(orjson.dumps(value)) // BYTES_IN_A_UNIT)

    def _pattern(self, pattern: str) -> Cost:
        self.patterns += 1
        if self.patterns > MAX_PATTERNS:
            raise SchemaRefused(f"has more than {MAX_PATTERNS} regular expressions")
        return pattern_cost(pattern)

    def _target(self, reference: Json) -> Json:
        if not isinstance(reference, str) or not PLAIN_REFERENCE.fullmatch(reference):
            raise SchemaRefused(
                f'refers to "{reference}"; only references such as "#/$defs/NAME" are supported'
            )
        target: Json = self.root
        for part in reference[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            elif isinstance(target, dict) and name in target:
                target = target[name]
            else:
                raise SchemaRefused(f'refers to "{reference}", which is not in it')
        return target


def _too_deep() -> SchemaRefused:
    return SchemaRefused(f"is nested more than {MAX_DEPTH} levels deep, with every $ref expanded")


def _inside(keyword: str, value: Json) -> Iterator[Json]:
    """Yield the schemas that a keyword applies."""
    if isinstance(value, dict | bool) and keyword in SINGLE_SCHEMA_KEYWORDS:
        yield value
    elif keyword in (SCHEMA_LIST_KEYWORDS if isinstance(value, list) else SCHEMA_MAP_KEYWORDS):
        yield from _values(value)


def _values(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


@lru_cache(maxsize=256)
def pattern_cost(pattern: str) -> Cost:
    """Return the cost by compiled size. Raises SchemaRefused if it is too large."""
    schema = {"pattern": pattern}
    for size, cost in PATTERN_COSTS:
        options = jsonschema_rs.RegexOptions(size_limit=size)
        try:
            jsonschema_rs.validator_for(schema, pattern_options=options)
        except ValueError:
            continue
        return Cost(character=cost)
    try:
        jsonschema_rs.validator_for(schema, pattern_options=PATTERN_OPTIONS)
    except ValueError as error:
        shown = str(error).splitlines()[0]
        raise SchemaRefused(f"has a wrong or too large regular expression: {shown}") from None
    return Cost(character=PATTERN_COSTS[-1][1], text=BACKTRACKING_COST)
