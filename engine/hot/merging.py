"""One environment of several: the files of a request in their order, and what a stack has already
with what is sent in addition. Documents are those of sound environments; nothing here is checked
but what two of them say about one parameter."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from engine.errors import Findings
from engine.hot.parameters import (
    BadValue,
    ParameterKind,
    ParameterSchema,
    convert,
    read_number,
)
from engine.hot.registry import covers
from engine.words import Json

Document = Mapping[str, Json]
REGISTRY, STRATEGIES = "resource_registry", "parameter_merge_strategies"
VALUES = ("parameters", "parameter_defaults")
#: Sections that are lists: what the later one says is added.
GATHERED = ("hooks", "event_sinks", "encrypted_param_names")


class Strategy(StrEnum):
    """How a later file's value of a parameter goes together with an earlier one's."""

    OVERWRITE = "overwrite"
    MERGE = "merge"
    DEEP_MERGE = "deep_merge"


def merge_files(
    files: Sequence[tuple[str, Document]],
    schemas: Mapping[str, ParameterSchema],
    findings: Findings,
) -> dict[str, Json]:
    """Return one document of those of files, (name, document) each, in their order.

    schemas: parameters of the template and of nested ones. As in Heat, a name that is none of them
    is passed over in all but the first file, a null says nothing, and a later file's
    ``resource_registry.resources`` replaces the earlier one's whole.
    """
    merged: dict[str, Json] = {}
    chosen: dict[str, Strategy] = {}
    for file, document in files:
        values = _Values(file, document.get(STRATEGIES, {}), schemas, chosen, findings)
        before = merged
        merged = _gathered(before, document)
        for section in VALUES:
            if document.get(section):
                merged[section] = values.over(before.get(section) or {}, document[section])
        if document.get(REGISTRY):
            merged[REGISTRY] = over_registry(before.get(REGISTRY, {}), document[REGISTRY])
    return merged


def add_to(stored: Document, document: Document) -> dict[str, Json]:
    """Return what a stack has with what is sent in addition, which is the stronger.

    Resources in the registry are added one by one; null takes away what was mapped.
    """
    merged = _gathered(stored, document)
    for section in VALUES:
        if section in stored or section in document:
            merged[section] = {**stored.get(section, {}), **document.get(section, {})}
    if REGISTRY in stored or REGISTRY in document:
        before, after = stored.get(REGISTRY, {}), document.get(REGISTRY, {})
        merged[REGISTRY] = over_registry(before, after) | _resources(before, after)
    return merged


def _gathered(before: Document, document: Document) -> dict[str, Json]:
    """Both, but for what is merged in ways of its own; a strategy has no meaning afterwards."""
    merged = {**document, **before}
    merged.pop(STRATEGIES, None)
    for section in GATHERED:
        if section in before and section in document:
            merged[section] = [*before[section], *document[section]]
    return merged


def over_registry(before: Document, after: Document) -> dict[str, Json]:
    """What null removes is that of others: it is kept, because an operator may have mapped it."""
    removed = [name for name, target in after.items() if target is None]
    kept = {
        name: target
        for name, target in before.items()
        if name == "resources" or not any(covers(pattern, name) for pattern in removed)
    }
    return kept | dict(after)


def _resources(before: Document, after: Document) -> dict[str, Json]:
    if not (before.get("resources") and after.get("resources")):
        return {}
    return {"resources": _deep_resources(before["resources"], after["resources"])}


def _deep_resources(before: Document, after: Document) -> dict[str, Json]:
    """By name, level by level; hooks are one value, also where they are a map."""
    whole = dict(before)
    for name, entry in after.items():
        earlier = whole.get(name)
        if isinstance(entry, dict) and isinstance(earlier, dict) and name != "hooks":
            entry = _deep_resources(earlier, entry)
        whole[name] = entry
    return whole


class _Values:
    """Parameters of one file, over those of the files before it. chosen: the strategy of each
    parameter, as the first file that has it said."""

    def __init__(
        self,
        file: str,
        strategies: Mapping[str, str],
        schemas: Mapping[str, ParameterSchema],
        chosen: dict[str, Strategy],
        findings: Findings,
    ) -> None:
        self._file = file
        self._strategies = strategies
        self._schemas = schemas
        self._chosen = chosen
        self._findings = findings

    def over(self, before: Document, after: Document) -> dict[str, Json]:
        whole = dict(before) or dict(after)
        for name, value in after.items():
            schema = self._schemas.get(name)
            if schema is None or value is None:
                continue
            strategy = self._strategy(name)
            earlier = before.get(name)
            if strategy is Strategy.OVERWRITE or earlier is None:
                whole[name] = value
            else:
                whole[name] = self._together(schema, strategy, earlier, value)
        return whole

    def _strategy(self, name: str) -> Strategy:
        said = self._strategies.get(name)
        usual = self._strategies.get("default", Strategy.OVERWRITE)
        wanted = Strategy(said or self._chosen.get(name) or usual)
        first = self._chosen.setdefault(name, wanted)
        if wanted is not first:
            self._findings.add(
                f"{self._file}: {STRATEGIES}.{name}",
                f"Conflicting merge strategy '{wanted}' for parameter '{name}' in file "
                f"'{self._file}'.",
                f"The first file that has it merges it by {first}; name one strategy in all.",
                "ConflictingMergeStrategyForParam",
            )
        return first

    def _together(
        self, schema: ParameterSchema, strategy: Strategy, before: Json, after: Json
    ) -> Json:
        place = f"{self._file}: {schema.name}"
        join = JOINS.get(schema.kind)
        if join is None:
            self._findings.add(
                place,
                f"Invalid merge strategy '{strategy}' for parameter '{schema.name}'.",
                f"A {schema.kind} can only be replaced: use {Strategy.OVERWRITE}.",
                "InvalidMergeStrategyForParam",
            )
            return after
        try:
            return join(before, after, strategy is Strategy.DEEP_MERGE)
        except BadValue as bad:
            said = bad.safe if schema.hidden else str(bad)
            self._findings.add(place, f"Cannot be merged: {said}")
            return after


def _texts(before: Json, after: Json, deep: bool) -> Json:
    first, second = (convert(ParameterKind.STRING, one) for one in (before, after))
    return first + second


def _sum(before: Json, after: Json, deep: bool) -> Json:
    first, second = (convert(ParameterKind.NUMBER, one) for one in (before, after))
    return read_number(str(first + second))


def _lists(before: Json, after: Json, deep: bool) -> Json:
    """Two texts give a text with commas; an empty one adds nothing."""
    if isinstance(before, str) and isinstance(after, str):
        return ",".join(one for one in (before, after) if one)
    first, second = (convert(ParameterKind.LIST, one) for one in (before, after))
    return first + second


def _json(before: Json, after: Json, deep: bool) -> Json:
    first, second = (convert(ParameterKind.JSON, one) for one in (before, after))
    if not first or not second:
        return first or second
    if not deep and isinstance(first, dict) and isinstance(second, dict):
        return first | _given(second)
    try:
        return _deep(first, second)
    except RecursionError:
        raise BadValue("It is nested too deeply.") from None


def _given(value: Document) -> dict[str, Json]:
    return {key: item for key, item in value.items() if item is not None}


def _deep(before: Json, after: Json) -> Json:
    """Of one kind they go together; of two the later one stays."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before | {key: _deep(before.get(key), item) for key, item in _given(after).items()}
    if isinstance(before, list) and isinstance(after, list):
        return before + after
    if isinstance(before, str) and isinstance(after, str):
        return before + after
    return after


#: How two values of a kind become one. What is missing here cannot.
JOINS: Mapping[ParameterKind, Callable[[Json, Json, bool], Json]] = {
    ParameterKind.STRING: _texts,
    ParameterKind.NUMBER: _sum,
    ParameterKind.LIST: _lists,
    ParameterKind.JSON: _json,
}
