"""Partial evaluation: from what is written in a template to expressions.

Everything that depends only on parameters, conditions and files becomes a value here, once, when
the stack is defined; what reads a resource stays a `Call`. Findings are collected in `Scope`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.errors import Findings, Invalid, one_of
from engine.hot import cfn_forms as c
from engine.hot.effort import Effort, TooMuch, size_of
from engine.hot.expression import Call, Expression
from engine.hot.facade import Facade, cfn_resource_facade, resource_facade
from engine.hot.following import select
from engine.hot.function import Function, Undecided, Wrong
from engine.hot.resolve import MASK
from engine.hot.schema import TypeSchema
from engine.hot.versions import Entry, Form, Unavailable, Version
from engine.hot.yaql_evaluation import check_expression, evaluate, limits_said
from engine.words import Json


class _Dropped:
    """Says: leave the list item, map entry or property out (an `if` without an else)."""


DROPPED: Final = _Dropped()

#: Stands for what was refused or is not known yet, so that what is around it is not judged by it.
REFUSED = "refused"


@dataclass(slots=True)
class Scope:
    """What a template's snippets can see.

    parameters: converted values, pseudo parameters among them. types: the schema of every resource
    there is. disabled: resources switched off by their condition. decide: evaluates a condition.
    parameter_names: those without a value as well. mappings: of a CFN template. facade: what a
    nested stack stands for; None: nothing. effort: what evaluating them may still cost.
    """

    version: Version
    parameters: Mapping[str, Json]
    hidden: frozenset[str]
    files: Mapping[str, str]
    types: Mapping[str, TypeSchema | None]
    disabled: frozenset[str]
    findings: Findings
    decide: Callable[[Json, str], bool]
    parameter_names: frozenset[str] = frozenset()
    mappings: Mapping[str, Json] = field(default_factory=dict)
    facade: Facade | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)


class Evaluator:
    """Evaluates snippets one after the other; after each, ``reads`` and ``secret`` tell of it.

    owner: the resource or output whose snippet it is. kept: how many calls were left standing.

    masked: hidden parameters and secret attributes read as ``******``, and no finding is made.
    """

    __slots__ = ("kept", "masked", "owner", "reads", "scope", "secret", "table")

    def __init__(self, scope: Scope, masked: bool = False) -> None:
        self.scope = scope
        self.masked = masked
        self.table = scope.version.functions
        self.reads: set[str] = set()
        self.secret = False
        self.kept = 0
        self.owner = ""

    def evaluate(self, snippet: Json, place: str) -> Expression:
        """Return the expression of a snippet; a dropped one is null."""
        found = self._walk(snippet, place)
        return None if found is DROPPED else found

    def _walk(self, snippet: Json, place: str) -> Expression:
        kind = type(snippet)
        if kind is dict:
            if len(snippet) == 1:
                ((name, args),) = snippet.items()
                if (entry := self.table.get(name)) is not None:
                    return self._call(name, entry, args, f"{place}.{name}")
            whole: dict[str, Expression] = {}
            for key, item in snippet.items():
                if type(item) is dict or type(item) is list:
                    item = self._walk(item, f"{place}.{key}")
                    if item is DROPPED:
                        continue
                elif type(item) is Call:  # of a template around this one
                    self.kept += 1
                whole[key] = item
            return whole
        if kind is list:
            items = (self._walk(item, f"{place}[{index}]") for index, item in enumerate(snippet))
            return [item for item in items if item is not DROPPED]
        if kind is Call:
            self.kept += 1
        return snippet

    def _call(self, name: str, entry: Entry, args: Json, place: str) -> Expression:
        try:
            if isinstance(entry, Unavailable):
                raise Wrong(f"The function {name} is {entry.value}.")
            if isinstance(entry, Function):
                return self._function(name, entry, args, place)
            return FORMS[entry](self, args, place)
        except Undecided:
            return self.keep(REFUSED, None)
        except TooMuch as much:
            self.scope.findings.add(place, *much.args)
            raise Invalid(self.scope.findings.all) from None
        except Wrong as wrong:
            return self._refuse(place, wrong)

    def _refuse(self, place: str, wrong: Wrong) -> Expression:
        if self.masked:
            return MASK
        remedy = str(wrong.args[1]) if len(wrong.args) > 1 else ""
        said = str(wrong.args[2]) if len(wrong.args) > 2 else ""
        # As Heat has it: only references of HOT resources have a class of their own.
        code = said if said and place.startswith("resources.") else "StackValidationFailed"
        self.scope.findings.add(place, str(wrong.args[0]), remedy, code)
        return self.keep(REFUSED, None)

    def keep(self, name: str, args: Json) -> Call:
        """Return a call that is left standing."""
        self.kept += 1
        return Call(name, self.scope.version.date, args)

    def _function(self, name: str, function: Function, args: Json, place: str) -> Expression:
        before = self.kept
        known = self.evaluate(args, place)
        function.shape(known)
        if self.kept == before:
            return self.scope.effort.call(function, known)
        if function.presume is not None and not isinstance(known, Call):
            presumed = function.presume(known)
            if presumed is not None:
                self.scope.effort.call(function, presumed)
        return self.keep(name, known)

    def get_param(self, args: Json, place: str) -> Expression:
        before = self.kept
        name, *path = _path(self.evaluate(args, place), "get_param", '[ param, "path" ]')
        scope = self.scope
        if name not in scope.parameters:
            if name in scope.parameter_names:
                return self.keep(REFUSED, None)  # refused already, or known later
            raise Wrong(
                f"The Parameter ({name}) was not provided.",
                one_of(name, [*scope.parameters], "Parameters"),
            )
        if name in scope.hidden:
            self.secret = True
            if self.masked:
                return MASK
        value = scope.parameters[name]
        self.spend(f"get_param {name}", value)
        if self.kept != before:
            return self.keep("select", [value, *path])
        return select(value, path, "") if path else value

    def spend(self, name: str, value: Json) -> None:
        """A large text named a thousand times must not become a thousand large texts."""
        sizes = self.scope.sizes
        if (size := sizes.get(name)) is None:
            size = sizes[name] = size_of(value, self.scope.effort.limits.size)
        self.scope.effort.make(size)

    def _get_file(self, args: Json, place: str) -> Expression:
        name = self.evaluate(args, place)
        if not isinstance(name, str):
            raise Wrong('Argument to "get_file" must be a string known when the stack is defined')
        if name not in self.scope.files:
            raise Wrong(
                f'No content found in the "files" section for get_file path: {name}',
                one_of(name, [*self.scope.files], "Files that were sent"),
            )
        self.spend(f"get_file {name}", self.scope.files[name])
        return self.scope.files[name]

    def get_resource(self, args: Json, place: str) -> Expression:
        name = self.evaluate(args, place)
        self._known_resource(name, place)
        return self.keep("get_resource", name)

    def _known_resource(self, name: Json, place: str) -> None:
        if not isinstance(name, str) or name not in self.scope.types:
            shown = name if isinstance(name, str) else "the result of a function"
            off = isinstance(name, str) and name in self.scope.disabled
            known = one_of(str(name), [*self.scope.types], "Resources")
            remedy = "Its condition is off." if off else known
            raise Wrong(
                f'The specified reference "{shown}" (in {self.owner}) is incorrect.',
                remedy,
                "InvalidTemplateReference",
            )
        self.reads.add(name)

    def _get_attr(self, args: Json, place: str) -> Expression:
        known = self.evaluate(args, place)
        least = 1 if self.scope.version.bare_get_attr else 2
        if not isinstance(known, list) or len(known) < least:
            raise Wrong('Arguments to "get_attr" must be of the form [resource, attribute, ...]')
        return self.attribute(known, place)

    def attribute(self, known: list[Json], place: str) -> Expression:
        """What [resource, attribute, path item, ...] becomes; without an attribute, all of them."""
        self._known_resource(known[0], place)
        if len(known) > 1:
            self._known_attribute(known[0], *known[1:3])
        if self._is_secret(known):
            self.secret = True
            if self.masked:
                return MASK
        return self.keep("get_attr", known)

    def _known_attribute(self, resource: str, attribute: Json, of_members: Json = None) -> None:
        schema = self.scope.types[resource]
        if not isinstance(attribute, str):
            raise Wrong("The attribute's name must be text that is known now.")
        if schema is not None and not schema.has_attribute(attribute):
            raise Wrong(
                f"The Referenced Attribute ({resource} {attribute}) is incorrect.",
                one_of(attribute, schema.attribute_names(), "Attributes"),
            )
        if schema is None or not isinstance(of_members, str) or attribute not in schema.attributes:
            return
        if schema.attributes[attribute].of_members and not schema.members_have(of_members):
            raise Wrong(
                f"The Referenced Attribute ({resource} {attribute} {of_members}) is incorrect.",
                one_of(of_members, sorted(schema.of_members or ()), "Attributes of members"),
            )

    def _is_secret(self, known: list[Json]) -> bool:
        schema = self.scope.types[known[0]]
        if schema is None:
            return False
        return schema.hides(known[1]) if len(known) > 1 else schema.has_secrets()

    def _if(self, args: Json, place: str) -> Expression:
        least = 2 if self.scope.version.if_may_lack_else else 3
        if not isinstance(args, list) or not least <= len(args) <= 3:
            shown = "[condition_name, value_if_true, value_if_false]"
            called = place.rpartition(".")[2]  # "if" or "Fn::If"
            raise Wrong(f'Arguments to "{called}" must be of the form: {shown}')
        taken = 1 if self.scope.decide(args[0], f"{place}[0]") else 2
        return self._walk(args[taken], f"{place}[{taken}]") if taken < len(args) else DROPPED

    def _yaql(self, args: Json, place: str) -> Expression:
        if not isinstance(args, dict) or "expression" not in args or len(args) > 2:
            raise Wrong(f'"yaql" syntax should be {YAQL_SYNTAX}')
        if unknown := args.keys() - {"expression", "data"}:
            raise Wrong(f'"yaql" has no "{min(unknown)}"; its syntax should be {YAQL_SYNTAX}')
        before = self.kept
        known = {key: self.evaluate(item, f"{place}.{key}") for key, item in args.items()}
        text = known["expression"]
        if not isinstance(text, Call):
            check_expression(text, self.scope.effort)
        limits = self.scope.effort.limits
        if self.kept != before:
            return self.keep("yaql", known | limits_said(limits))
        found = evaluate(text, known.get("data", {}), limits, self.scope.effort)
        return self.scope.effort.made(found)


YAQL_SYNTAX = "yaql: {expression: $.data.var1.sum(), data: {var1: [3, 2, 1]}}"

FORMS: Mapping[Form, Callable[[Evaluator, Json, str], Expression]] = {
    Form.GET_PARAM: Evaluator.get_param,
    Form.GET_FILE: Evaluator._get_file,
    Form.GET_RESOURCE: Evaluator.get_resource,
    Form.GET_ATTR: Evaluator._get_attr,
    Form.IF: Evaluator._if,
    Form.FACADE: resource_facade,
    Form.REF: c.ref,
    Form.GET_ATT: c.get_att,
    Form.FIND_IN_MAP: c.find,
    Form.CFN_FACADE: cfn_resource_facade,
    Form.YAQL: Evaluator._yaql,
}


def _path(args: Json, name: str, example: str) -> list[Json]:
    parts = args if isinstance(args, list) else [args]
    if not parts or not isinstance(parts[0], str) or not parts[0]:
        raise Wrong(f'Arguments to "{name}" must be a name or of the form {example}')
    return parts
