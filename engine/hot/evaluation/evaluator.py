"""Partial evaluation: snippets of a template to expressions.

Everything that depends only on parameters, conditions and files is evaluated when the stack is
defined; functions that read a resource become a `FunctionCall`. Faults are added to the findings
of the `EvaluationScope`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Final

from engine.errors import MAX_WARNINGS, Findings, Invalid, one_of
from engine.hot.evaluation.resource_facade import (
    ResourceFacade,
    cfn_resource_facade,
    resource_facade,
)
from engine.hot.evaluation.stack_outputs import StackOutputs
from engine.hot.expressions.expression import REFUSED, Expression, FunctionCall, is_static
from engine.hot.expressions.masking import MASK, contains_mask, propagate_mask
from engine.hot.expressions.path_lookup import look_up_path
from engine.hot.functions.cfn import find_in_map
from engine.hot.functions.cost_budget import BudgetExceeded, CostBudget, size_of
from engine.hot.functions.function import (
    NO_EFFECT,
    OUTPUT_ERROR,
    QUOTE_NAMES,
    DeferredFormError,
    Function,
    FunctionError,
    InvalidCall,
    InvalidForm,
    UndecidedError,
    heat_syntax,
    quote_as_heat,
    without_secrets,
)
from engine.hot.language.misspelling import UNKNOWN_FUNCTION, explain_unknown_function
from engine.hot.language.versions import (
    EXTENDED_FUNCTIONS,
    Entry,
    StackFunction,
    UnavailableReason,
    Version,
    successor_remedy,
)
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.keyed_names import meant_name
from engine.hot.yaql.evaluation import check_yaql, evaluate_yaql, limits_to_store
from engine.words import Json


class Omission:
    """Type of OMITTED: omit the list item, map entry or property (an `if` without else)."""


OMITTED: Final = Omission()


@dataclass(frozen=True, slots=True)
class LocalValue:
    """The value of a local. reads: resources that it reads. masked: with secrets masked. size: of
    the expression, in characters.
    """

    expression: Expression
    reads: frozenset[str] = frozenset()
    secret: bool = False
    masked: Expression = None
    size: int = 0


@dataclass(frozen=True, slots=True)
class ForEachItem:
    """The key and the value of a resource with `for_each`.

    base: its name without the key. snippet: of a value that reads resources, in place of it.
    """

    base: str
    key: str
    value: Json
    snippet: Json = None


@dataclass(slots=True)
class EvaluationScope:
    """What the snippets of a template can read.

    parameters: converted values, including pseudo parameters. hidden: names of hidden parameters.
    types: schema of every enabled resource; None if unknown. disabled: resources whose condition is
    false. decide: evaluates a condition. parameter_names: all parameters, including those without a
    value. mappings: of a CFN template. facade: the resource that a nested stack implements; None in
    a root stack. budget: cost budget of the definition. locals: the values of the locals by name.
    keyed: names by key of all enabled resources with `for_each`, by base name. stack_outputs: of
    other stacks; shared by all stacks of a tree.
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
    facade: ResourceFacade | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    budget: CostBudget = field(default_factory=CostBudget)
    locals: dict[str, LocalValue] = field(default_factory=dict)
    keyed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stack_outputs: StackOutputs = field(default_factory=StackOutputs)

    def known_parameters(self) -> list[str]:
        """Return the names of all parameters, also of those without a value, for suggestions."""
        return [*self.parameters, *sorted(self.parameter_names.difference(self.parameters))]

    def known_resources(self) -> list[str]:
        """Return the names of all resources, also of disabled ones and before `for_each`, for
        suggestions."""
        names = dict.fromkeys((*self.types, *self.keyed, *sorted(self.disabled)))
        return list(names)


def check_form(check: Callable[[Json], None], args: Json) -> None:
    """Raise InvalidCall, or DeferredFormError, if the check refuses the arguments of a call."""
    try:
        check(args)
    except (BudgetExceeded, DeferredFormError):
        raise
    except FunctionError as wrong:
        raise InvalidCall(wrong.reason, wrong.remedy, wrong.code, wrong.heat_reason) from None


class Evaluator:
    """Evaluates snippets one by one; `reads` and `secret` accumulate for the caller.

    owner: the resource or output of the snippet, for messages. reads: names of the resources that
    were read. secret: a hidden parameter or secret attribute was read. deferred: number of calls
    that were not evaluated. calls: number of all calls. masked: hidden parameters and secret
    attributes evaluate to the mask, and no findings are added. of_output: calls without a value are
    warnings, and expressions that fail when they are read; so they are while `unused` is true, for
    properties that nothing reads. tolerated: the number of such calls. each: of the resource that
    is evaluated; None: it has no `for_each`.
    """

    __slots__ = (
        "calls", "deferred", "each", "masked", "of_output", "owner", "reads", "scope", "secret",
        "table", "tolerated", "unused",
    )  # fmt: skip

    stack_functions: ClassVar[Mapping[StackFunction, Callable[..., Expression]]] = {}

    def __init__(
        self, scope: EvaluationScope, *, masked: bool = False, of_output: bool = False
    ) -> None:
        self.scope = scope
        self.masked = masked
        self.of_output = of_output
        self.unused = False
        self.tolerated = 0
        self.table = scope.version.functions
        self.reads: set[str] = set()
        self.secret = False
        self.deferred = 0
        self.calls = 0
        self.owner = ""
        self.each: ForEachItem | None = None

    def evaluate(self, snippet: Json, place: str) -> Expression:
        """Return the expression of a snippet; null if it is dropped."""
        found = self._walk(snippet, place)
        return None if found is OMITTED else found

    def evaluate_properties(self, snippet: Json, place: str, names: Collection[str]) -> Expression:
        """As `evaluate`. names: of properties. A resource whose only property has the name of a
        function that Heat does not have, such as `length`, has this property: it is no call."""
        if type(snippet) is dict and len(snippet) == 1:
            ((name, value),) = snippet.items()
            if name in EXTENDED_FUNCTIONS and name in names and name in self.table:
                found = self._walk(value, f"{place}.{name}")
                return {} if found is OMITTED else {name: found}
        return self.evaluate(snippet, place)

    def _walk(self, snippet: Json, place: str) -> Expression:
        kind = type(snippet)
        if kind is dict:
            if len(snippet) == 1:
                ((name, args),) = snippet.items()
                if (entry := self.table.get(name)) is not None:
                    return self._call(name, entry, args, f"{place}.{name}")
                self._check_spelling(name, args, place)
            whole: dict[str, Expression] = {}
            for key, item in snippet.items():
                if type(item) is dict or type(item) is list:
                    item = self._walk(item, f"{place}.{key}")
                    if item is OMITTED:
                        continue
                elif type(item) is FunctionCall:  # from the parent's template
                    self.deferred += 1
                    self.calls += 1
                whole[key] = item
            return whole
        if kind is list:
            items = (self._walk(item, f"{place}[{index}]") for index, item in enumerate(snippet))
            return [item for item in items if item is not OMITTED]
        if kind is FunctionCall:
            self.deferred += 1
            self.calls += 1
        return snippet

    def _check_spelling(self, name: str, args: Json, place: str) -> None:
        """Warn of a map that was probably meant as a call."""
        if (meant := explain_unknown_function(name, args, self.scope.version)) is not None:
            self.scope.findings.warn(f"{place}.{name}", *meant, UNKNOWN_FUNCTION)

    def _call(self, name: str, entry: Entry, args: Json, place: str) -> Expression:
        outer, self.secret = self.secret, False
        self.calls += 1
        try:
            if isinstance(entry, UnavailableReason):
                raise InvalidCall(f"The function {name} is {entry.value}.", successor_remedy(name))
            if isinstance(entry, Function):
                return self._function(name, entry, args, place)
            return self.stack_functions[entry](self, args, place)
        except UndecidedError:
            return self.defer(REFUSED, None)
        except BudgetExceeded as much:
            self.scope.findings.add(place, much.reason, much.remedy, much.code)
            raise Invalid(self.scope.findings.all, self.scope.findings.warnings) from None
        except FunctionError as wrong:
            return self._refuse(place, wrong)
        finally:
            self.secret = self.secret or outer

    def _refuse(self, place: str, wrong: FunctionError) -> Expression:
        """Add a finding; `secret` is true if the arguments of the call contain a secret."""
        if self.masked:
            return MASK
        if self.secret:
            wrong = without_secrets(wrong)
        # Heat checks references also where nothing reads them: they have a code of their own.
        tolerated = self.of_output or (self.unused and not wrong.code)
        if tolerated and not isinstance(wrong, InvalidCall):
            self.tolerated += 1
            code = OUTPUT_ERROR if self.of_output else NO_EFFECT
            self.scope.findings.warn(place, wrong.reason, wrong.remedy, code)
            return self.defer(REFUSED, str(wrong.heat_reason or wrong.reason))
        # As in Heat: only references in HOT resources have an error code of their own.
        own = wrong.code and place.startswith("resources.")
        code = wrong.code if own else "StackValidationFailed"
        sentence, heat_reason = wrong.sentence, wrong.heat_reason
        if heat_reason and isinstance(wrong, InvalidCall):  # Heat names the place of the function
            sentence, heat_reason = f"{place}: : {heat_reason}", ""
        self.scope.findings.add(
            place, wrong.reason, wrong.remedy, code, sentence=sentence, heat_reason=heat_reason
        )
        return self.defer(REFUSED, None)

    def suggest(self, name: str, known: Sequence[str], what: str) -> str:
        """Return a remedy as `one_of`; "" if more warnings than are shown have one already, because
        the search takes milliseconds, and outputs may have any number of faults."""
        if len(self.scope.findings.warned) >= MAX_WARNINGS:
            return ""
        return one_of(name, known, what)

    def defer(self, name: str, args: Json) -> FunctionCall:
        """Return a call that is evaluated later, and count it."""
        self.deferred += 1
        return FunctionCall(name, self.scope.version.date, args)

    def _function(self, name: str, function: Function, args: Json, place: str) -> Expression:
        before = self.deferred
        known = self.evaluate(args, place)
        try:
            check_form(function.shape, known)
            if self.deferred == before:
                found = self.scope.budget.call(function, known)
                return propagate_mask(known, found) if self.masked else found
            self._check_literals(function, known)
        except InvalidCall as wrong:
            if (self.of_output or self.unused) and self._is_fault_of_value(function, args):
                raise FunctionError(
                    wrong.reason, wrong.remedy, wrong.code, wrong.heat_reason
                ) from None
            raise
        return self.defer(name, known)

    def _check_literals(self, function: Function, args: Expression) -> None:
        """Check what is known of arguments with calls. Raises FunctionError."""
        if function.with_placeholders is None or isinstance(args, FunctionCall):
            return
        if (filled := function.with_placeholders(args)) is not None:
            self.scope.budget.call(function, filled)

    def _is_fault_of_value(self, function: Function, args: Json) -> bool:
        """Whether the template's own arguments are valid, whatever the calls in them return. Heat
        checks the others of an output only when it is read."""
        literal = self._without_values(args)
        if literal == args or isinstance(literal, FunctionCall):
            return False
        try:
            check_form(function.shape, literal)
            self._check_literals(function, literal)
        except InvalidCall:
            return False
        except FunctionError:
            pass
        return True

    def _without_values(self, snippet: Json) -> Expression:
        """The snippet with its calls, which are not evaluated."""
        if isinstance(snippet, dict):
            if len(snippet) == 1:
                ((name, args),) = snippet.items()
                if name in self.table:
                    return FunctionCall(name, self.scope.version.date, args)
            return {key: self._without_values(one) for key, one in snippet.items()}
        if isinstance(snippet, list):
            return [self._without_values(one) for one in snippet]
        return snippet

    def get_param(self, args: Json, place: str) -> Expression:
        before = self.deferred
        name, *path = _parameter_path(self.evaluate(args, place))
        scope = self.scope
        if name not in scope.parameters:
            if name in scope.parameter_names:
                return self.defer(REFUSED, None)  # reported already, or known later
            raise FunctionError(
                f"The Parameter ({name}) was not provided.",
                self.suggest(name, scope.known_parameters(), "Parameters"),
            )
        if name in scope.hidden:
            self.secret = True
            if self.masked:
                return MASK
        value = scope.parameters[name]
        self.spend(f"get_param {name}", value)
        if self.deferred != before:
            return self.defer("select", [value, *path])
        if self.masked and contains_mask(path):
            return MASK
        return look_up_path(value, path, "") if path else value

    def spend(self, name: str, value: Json) -> None:
        """Spend the size of a value each time a snippet reads it. name: key of the cached size."""
        sizes = self.scope.sizes
        if (size := sizes.get(name)) is None:
            size = sizes[name] = size_of(value, self.scope.budget.limits.size)
        self.scope.budget.spend_size(size)

    def _get_file(self, args: Json, place: str) -> Expression:
        name = self.evaluate(args, place)
        if not isinstance(name, str):
            known = "" if is_static(name) else " known when the stack is defined"
            remedy = "Write a key of `files`."
            raise FunctionError(f'Argument to "get_file" must be a string{known}', remedy)
        if name not in self.scope.files:
            raise FunctionError(
                f'No content found in the "files" section for get_file path: {name}',
                self.suggest(name, [*self.scope.files], "Files that were sent"),
            )
        self.spend(f"get_file {name}", self.scope.files[name])
        return self.scope.files[name]

    def get_resource(self, args: Json, place: str) -> Expression:
        name = self.evaluate(args, place)
        if isinstance(name, dict | list):
            raise InvalidCall(
                'The argument of "get_resource" must be the name of a resource.',
                "Write get_resource: NAME.",
            )
        self._check_resource(name, place)
        return self.defer("get_resource", name)

    def _check_resource(self, name: Json, place: str) -> None:
        if not isinstance(name, str) or name not in self.scope.types:
            shown = "the result of a function"
            if not isinstance(name, FunctionCall):
                shown = quote_as_heat(name)
            off = isinstance(name, str) and name in self.scope.disabled
            remedy = "Its condition is false." if off else self._suggest_resource(name)
            raise FunctionError(
                f'The specified reference "{shown}" (in {self._referrer(place)}) is incorrect.',
                remedy,
                "InvalidTemplateReference",
            )
        self.reads.add(name)

    def _suggest_resource(self, name: Json) -> str:
        if isinstance(name, bool):
            return QUOTE_NAMES
        if isinstance(name, str) and (meant := meant_name(name, self.scope.keyed)) is not None:
            return f"Did you mean '{meant}'?"
        return self.suggest(str(name), self.scope.known_resources(), "Resources")

    def _referrer(self, place: str) -> str:
        """Return what refers to a resource, as Heat names it. place: of the function."""
        _, found, path = place.partition(f"resources.{self.owner}.properties.")
        return f"{self.owner}.Properties.{path.rpartition('.')[0]}" if found else self.owner

    def _get_attr(self, args: Json, place: str) -> Expression:
        known = self.evaluate(args, place)
        if known and not isinstance(known, list):
            raise InvalidCall('Argument to "get_attr" must be a list', ATTRIBUTE_REMEDY)
        bare, form = self.scope.version.bare_get_attr, "[resource_name, attribute, (path), ...]"
        if not isinstance(known, list) or len(known) < (1 if bare else 2):
            can = "can be of the next forms: [resource_name] or" if bare else "must be of the form"
            raise InvalidCall(f'Arguments to "get_attr" {can} {form}', ATTRIBUTE_REMEDY)
        return self.attribute(known, place)

    def attribute(self, known: list[Json], place: str) -> Expression:
        """Return the expression of [resource, attribute, path item, ...]; without an attribute, of
        all attributes.
        """
        try:
            self._check_resource(known[0], place)
            if len(known) > 1:
                self._check_attribute(known[0], *known[1:3])
        except DeferredFormError:
            raise
        except FunctionError as wrong:
            raise InvalidCall(wrong.reason, wrong.remedy, wrong.code) from None
        if self._is_secret(known):
            self.secret = True
            if self.masked:
                return MASK
        return self.defer("get_attr", known)

    def _check_attribute(self, resource: str, attribute: Json, of_members: Json = None) -> None:
        schema = self.scope.types[resource]
        if not isinstance(attribute, str):
            raise FunctionError(
                "The attribute's name must be text that is known now.",
                "Write the name, or take it from a parameter.",
            )
        if schema is not None and not schema.has_attribute(attribute):
            error = DeferredFormError if schema.of_template else FunctionError
            raise error(
                f"The Referenced Attribute ({resource} {attribute}) is incorrect.",
                self.suggest(attribute, schema.attribute_names(), "Attributes"),
            )
        if schema is None or not isinstance(of_members, str) or attribute not in schema.attributes:
            return
        if schema.attributes[attribute].takes_member_attribute and not schema.members_have(
            of_members
        ):
            raise FunctionError(
                f"The Referenced Attribute ({resource} {attribute} {of_members}) is incorrect.",
                self.suggest(
                    of_members, sorted(schema.member_attributes or ()), "Attributes of members"
                ),
            )

    def _is_secret(self, known: list[Json]) -> bool:
        schema = self.scope.types[known[0]]
        if schema is None:
            return False
        return schema.is_secret(known[1]) if len(known) > 1 else schema.has_secrets()

    def _if(self, args: Json, place: str) -> Expression:
        min_arguments = 2 if self.scope.version.optional_else else 3
        if not isinstance(args, list) or not min_arguments <= len(args) <= 3:
            shown = "[condition_name, value_if_true, value_if_false]"
            called = place.rpartition(".")[2]  # "if" or "Fn::If"
            raise InvalidCall(
                f'Arguments to "{called}" must be of the form: {shown}',
                f"Write {called}: [CONDITION, VALUE, VALUE].",
            )
        branch = 1 if self._decide(args[0], f"{place}[0]") else 2
        return self._walk(args[branch], f"{place}[{branch}]") if branch < len(args) else OMITTED

    def _decide(self, condition: Json, place: str) -> bool:
        try:
            return self.scope.decide(condition, place)
        except UndecidedError:
            raise
        except FunctionError as wrong:
            refused = InvalidCall(wrong.reason, wrong.remedy, wrong.code)
            if isinstance(wrong, InvalidForm):  # Heat reads the condition on its own
                called = place.rpartition(".")[2].removesuffix("[0]")
                refused.sentence = f"{called}{wrong.inside}: : {wrong}"
            raise refused from None

    def _yaql(self, args: Json, place: str) -> Expression:
        if not isinstance(args, dict):
            remedy = "Write a map with an expression, and data for it."
            raise InvalidCall('Arguments to "yaql" must be a map.', remedy)
        if "expression" not in args or len(args) > 2:
            refused = InvalidCall(
                f'"yaql" syntax should be {YAQL_SYNTAX}',
                'Write an "expression", and a map "data" for it.',
            )
            refused.heat_reason = heat_syntax("yaql", YAQL_EXAMPLE)
            raise refused
        if unknown := args.keys() - {"expression", "data"}:
            raise InvalidCall(
                f'"yaql" has no "{min(unknown)}"; its syntax should be {YAQL_SYNTAX}',
                'Write an "expression", and a map "data" for it.',
            )
        before = self.deferred
        known = {key: self.evaluate(item, f"{place}.{key}") for key, item in args.items()}
        text = known["expression"]
        if not isinstance(text, FunctionCall):
            check_form(partial(check_yaql, budget=self.scope.budget), text)
        limits = self.scope.budget.limits
        if self.deferred != before:
            return self.defer("yaql", known | limits_to_store(limits))
        found = evaluate_yaql(text, known.get("data", {}), limits, self.scope.budget)
        self.scope.budget.count_value(found)
        return propagate_mask(known, found) if self.masked else found


def _ref(evaluator: Evaluator, args: Json, place: str) -> Expression:
    """Ref: the value of a parameter, or the reference of a resource."""
    scope = evaluator.scope
    if isinstance(args, dict | list | bool) or args is None:
        raise FunctionError(
            'The argument of "Ref" must be the name of a parameter or of a resource.',
            "Write a name.",
        )
    args = str(args)
    if args in scope.types or args in scope.disabled:
        return evaluator.get_resource(args, place)
    if args in scope.parameters or args in scope.parameter_names:
        return evaluator.get_param(args, place)
    raise FunctionError(
        f'The specified reference "{args}" (in {evaluator.owner}) is incorrect.',
        evaluator.suggest(
            args,
            [*scope.known_resources(), *scope.known_parameters()],
            "Resources and parameters",
        ),
    )


def _get_att(evaluator: Evaluator, args: Json, place: str) -> Expression:
    """Fn::GetAtt: an attribute, given as [resource, attribute] or "resource.attribute"."""
    known = evaluator.evaluate(args, place)
    if isinstance(known, str):
        resource, dot, attribute = known.partition(".")
        known = [resource, attribute] if dot else []
    if not isinstance(known, list) or len(known) != 2:
        form = "[resource_name, attribute]"
        raise InvalidCall(
            f'Arguments to "Fn::GetAtt" must be of the form {form}',
            "Write Fn::GetAtt: [RESOURCE, ATTRIBUTE].",
        )
    return evaluator.attribute(known, place)


def _find_in_map(evaluator: Evaluator, args: Json, place: str) -> Expression:
    """Fn::FindInMap: a value of the `Mappings` section; deferred if a key depends on a resource."""
    before, secret = evaluator.deferred, evaluator.secret
    evaluator.secret = False
    known = evaluator.evaluate(args, place)
    hidden, evaluator.secret = evaluator.secret, evaluator.secret or secret
    if not isinstance(known, list) or len(known) != 3:
        form = "[mapping, key, value]"
        raise InvalidCall(
            f'Arguments to "Fn::FindInMap" must be of the form {form}',
            "Write Fn::FindInMap: [MAP, KEY, VALUE_KEY].",
        )
    mappings = evaluator.scope.mappings
    if evaluator.deferred == before:
        value = find_in_map(mappings, known, hidden=hidden)
        if evaluator.masked and hidden:
            return MASK
        evaluator.spend(f"Fn::FindInMap {known!r}", value)
        return value
    name = known[0]
    if isinstance(name, str):
        mappings = {name: mappings[name]} if name in mappings else {}
    evaluator.spend(f"Fn::FindInMap {[*mappings]!r}", mappings)
    return evaluator.defer("find_in_map", [mappings, *known])


ATTRIBUTE_REMEDY: Final = "Write [RESOURCE, ATTRIBUTE]; keys and indices of its value may follow."
YAQL_SYNTAX = "yaql: {expression: $.data.var1.sum(), data: {var1: [3, 2, 1]}}"
#: The arguments in Heat's message.
YAQL_EXAMPLE = """\
              expression: $.data.var1.sum()
              data:
                var1: [3, 2, 1]"""

STACK_FUNCTIONS: Mapping[StackFunction, Callable[[Evaluator, Json, str], Expression]] = {
    StackFunction.GET_PARAM: Evaluator.get_param,
    StackFunction.GET_FILE: Evaluator._get_file,
    StackFunction.GET_RESOURCE: Evaluator.get_resource,
    StackFunction.GET_ATTR: Evaluator._get_attr,
    StackFunction.IF: Evaluator._if,
    StackFunction.FACADE: resource_facade,
    StackFunction.REF: _ref,
    StackFunction.GET_ATT: _get_att,
    StackFunction.FIND_IN_MAP: _find_in_map,
    StackFunction.CFN_FACADE: cfn_resource_facade,
    StackFunction.YAQL: Evaluator._yaql,
}
Evaluator.stack_functions = STACK_FUNCTIONS


def _parameter_path(args: Json) -> list[Json]:
    """Return the arguments of get_param: the name, and keys and indices of its value."""
    remedy = "Write the name of a parameter, or [NAME, KEY, ...]."
    if args is False:
        remedy = QUOTE_NAMES
    # An attribute, which is not known yet, cannot be the name.
    unknown = isinstance(args, FunctionCall) and args.name == StackFunction.GET_ATTR.value
    if args in (None, "", [], {}) or unknown:
        raise FunctionError('Function "get_param" must have arguments', remedy)
    parts = [args] if isinstance(args, str) else args
    if isinstance(parts[0] if isinstance(parts, list) else parts, bool):
        remedy = QUOTE_NAMES
    if not isinstance(parts, list):
        raise FunctionError('Argument to "get_param" must be string or list', remedy)
    if not isinstance(parts[0], str) or not parts[0]:
        raise FunctionError('Parameter name in "get_param" must be string', remedy)
    return parts
