"""Merges environments: the files of a request in order, and a stored environment with an additional
one.

The documents come from valid environments; only conflicts between two of them are checked here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum

from engine.errors import Finding, Findings
from engine.hot.environment.context_section import CONTEXT
from engine.hot.environment.registry import pattern_covers
from engine.hot.schema.parameters import (
    InvalidValue,
    ParameterKind,
    ParameterSchema,
    convert,
    parse_number,
)
from engine.words import Json

Document = Mapping[str, Json]
REGISTRY, STRATEGIES = "resource_registry", "parameter_merge_strategies"
VALUES = ("parameters", "parameter_defaults")
#: Sections that are maps: a later document's keys win.
MAP_SECTIONS = ("convergence", CONTEXT)
#: Sections that are lists: a later document's items are appended.
HIDDEN_PARAMETERS_SECTION = "encrypted_param_names"
LIST_SECTIONS = ("hooks", "event_sinks", HIDDEN_PARAMETERS_SECTION)


class Strategy(StrEnum):
    """How a later file's parameter value is merged with an earlier one's (Heat's
    parameter_merge_strategies).
    """

    OVERWRITE = "overwrite"
    MERGE = "merge"
    DEEP_MERGE = "deep_merge"


def merge_files(
    files: Sequence[tuple[str, Document]],
    schemas: Mapping[str, ParameterSchema],
    findings: Findings,
) -> dict[str, Json]:
    """Return one document from files, (name, document) each, in their order.

    schemas: parameters of the template and of nested ones. As in Heat: an unknown parameter is
    ignored in all files but the first, a null is ignored, and a later file's
    `resource_registry.resources` replaces the earlier one's.
    """
    merged: dict[str, Json] = {}
    chosen: dict[str, Strategy] = {}
    hidden = {name for _, document in files for name in document.get(HIDDEN_PARAMETERS_SECTION, ())}
    hidden.update(name for name, schema in schemas.items() if schema.hidden)
    for file, document in files:
        values = _ValueMerger(file, document.get(STRATEGIES, {}), schemas, chosen, findings, hidden)
        before = merged
        merged = _merge_lists(before, document)
        for section in VALUES:
            if document.get(section):
                merged[section] = values.merge_section(
                    section, before.get(section) or {}, document[section]
                )
        if document.get(REGISTRY):
            merged[REGISTRY] = merge_registry(before.get(REGISTRY, {}), document[REGISTRY])
    return merged


def merge_into_stored(stored: Document, document: Document) -> dict[str, Json]:
    """Return the stored environment merged with an additional one, which takes precedence.

    Resources in the registry are merged by name; a null removes an entry.
    """
    merged = _merge_lists(stored, document)
    for section in VALUES:
        if section in stored or section in document:
            merged[section] = {**stored.get(section, {}), **document.get(section, {})}
    if REGISTRY in stored or REGISTRY in document:
        before, after = stored.get(REGISTRY, {}), document.get(REGISTRY, {})
        merged[REGISTRY] = merge_registry(before, after) | _resources(before, after)
    return merged


def _merge_lists(before: Document, document: Document) -> dict[str, Json]:
    """Merge all sections without a merge rule of their own; drop the strategies."""
    merged = {**document, **before}
    merged.pop(STRATEGIES, None)
    for section in LIST_SECTIONS:
        if section in before and section in document:
            merged[section] = [*before[section], *document[section]]
    for section in MAP_SECTIONS:
        if section in before and section in document:
            merged[section] = {**before[section], **document[section]}
    return merged


def merge_registry(before: Document, after: Document) -> dict[str, Json]:
    """Merge registries. A null is kept, because it also removes the operator's entry."""
    removed = [name for name, target in after.items() if target is None]
    kept = {
        name: target
        for name, target in before.items()
        if name == "resources" or not any(pattern_covers(pattern, name) for pattern in removed)
    }
    return kept | dict(after)


def _resources(before: Document, after: Document) -> dict[str, Json]:
    if not (before.get("resources") and after.get("resources")):
        return {}
    return {"resources": _deep_resources(before["resources"], after["resources"])}


def _deep_resources(before: Document, after: Document) -> dict[str, Json]:
    """Merge by name, level by level; `hooks` are replaced as a whole, even if they are a map."""
    whole = dict(before)
    for name, entry in after.items():
        earlier = whole.get(name)
        if isinstance(entry, dict) and isinstance(earlier, dict) and name != "hooks":
            entry = _deep_resources(earlier, entry)
        whole[name] = entry
    return whole


class _ValueMerger:
    """Merges the parameter values of one file over those of earlier files. chosen: strategy of each
    parameter, from the first file that has a value for it. hidden: names of hidden parameters.
    """

    def __init__(
        self,
        file: str,
        strategies: Mapping[str, str],
        schemas: Mapping[str, ParameterSchema],
        chosen: dict[str, Strategy],
        findings: Findings,
        hidden: Collection[str],
    ) -> None:
        self._hidden = hidden
        self._file = file
        self._strategies = strategies
        self._schemas = schemas
        self._chosen = chosen
        self._findings = findings

    def merge_section(self, section: str, before: Document, after: Document) -> dict[str, Json]:
        """Return the merged values of a section; conflicts are added to the findings."""
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
                whole[name] = self._merge(section, schema, strategy, earlier, value)
        return whole

    def _strategy(self, name: str) -> Strategy:
        own = self._strategies.get(name)
        usual = self._strategies.get("default", Strategy.OVERWRITE)
        given = own or self._chosen.get(name) or usual
        # As in Heat, an unknown strategy has no effect; the environment has a warning.
        wanted = Strategy(given) if given in [*Strategy] else Strategy.OVERWRITE
        first = self._chosen.setdefault(name, wanted)
        if wanted is not first:
            self._add(
                f"{STRATEGIES}.{name}",
                f"Conflicting merge strategy '{wanted}' for parameter '{name}' in file "
                f"'{self._file}'.",
                f"The first file that has it merges it by {first}; name one strategy in all.",
                "ConflictingMergeStrategyForParam",
            )
        return first

    def _add(
        self,
        place: str,
        reason: str,
        remedy: str,
        code: str = "StackValidationFailed",
        sentence: str = "",
    ) -> None:
        """place: in the file. sentence: see `Finding`."""
        shown, secret = f"{self._file}: {place}", bool(self._hidden)
        finding = Finding(
            shown, reason, remedy, code, self._file, place, secret=secret, sentence=sentence
        )
        self._findings.add_finding(finding)

    def _merge(
        self, section: str, schema: ParameterSchema, strategy: Strategy, before: Json, after: Json
    ) -> Json:
        place = f"{section}.{schema.name}"
        join = MERGERS.get(schema.kind)
        if join is None:
            self._add(
                place,
                f"Invalid merge strategy '{strategy}' for parameter '{schema.name}'.",
                f"A {schema.kind} can only be replaced: use {Strategy.OVERWRITE}.",
                "InvalidMergeStrategyForParam",
                # Heat reads the value before it knows that its type cannot be merged.
                "" if isinstance(after, str | list) else "Invalid parameter in environment .",
            )
            return after
        try:
            return join(before, after, strategy is Strategy.DEEP_MERGE)
        except InvalidValue as bad:
            reason = bad.safe if schema.name in self._hidden else str(bad)
            self._add(
                place,
                f"Cannot be merged: {reason}",
                f"Correct the value, or use the strategy {Strategy.OVERWRITE}.",
            )
            return after


def _merge_strings(before: Json, after: Json, deep: bool) -> Json:
    first, second = (convert(ParameterKind.STRING, one) for one in (before, after))
    return first + second


def _merge_numbers(before: Json, after: Json, deep: bool) -> Json:
    first, second = (convert(ParameterKind.NUMBER, one) for one in (before, after))
    return parse_number(str(first + second))


def _merge_lists_of_text(before: Json, after: Json, deep: bool) -> Json:
    """Merge lists; two strings give a comma-delimited string, and an empty one adds nothing."""
    if isinstance(before, str) and isinstance(after, str):
        return ",".join(one for one in (before, after) if one)
    first, second = (convert(ParameterKind.LIST, one) for one in (before, after))
    return first + second


def _merge_json(before: Json, after: Json, deep: bool) -> Json:
    first, second = (convert(ParameterKind.JSON, one) for one in (before, after))
    if not first or not second:
        return first or second
    if not deep and isinstance(first, dict) and isinstance(second, dict):
        return first | _without_nulls(second)
    try:
        return _merge_deep(first, second)
    except RecursionError:
        raise InvalidValue("It is nested too deeply.") from None


def _without_nulls(value: Document) -> dict[str, Json]:
    return {key: item for key, item in value.items() if item is not None}


def _merge_deep(before: Json, after: Json) -> Json:
    """Merge values of the same type; of different types the later one wins."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before | {
            key: _merge_deep(before.get(key), item) for key, item in _without_nulls(after).items()
        }
    if isinstance(before, list) and isinstance(after, list):
        return before + after
    if isinstance(before, str) and isinstance(after, str):
        return before + after
    return after


#: Merge function of each kind; other kinds cannot be merged.
MERGERS: Mapping[ParameterKind, Callable[[Json, Json, bool], Json]] = {
    ParameterKind.STRING: _merge_strings,
    ParameterKind.NUMBER: _merge_numbers,
    ParameterKind.LIST: _merge_lists_of_text,
    ParameterKind.JSON: _merge_json,
}
