"""Evaluation in Headgate's own versions of HOT: references such as `${name}` in strings, locals,
and resources with `for_each`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from engine.errors import public
from engine.hot.evaluation.evaluator import (
    OMITTED,
    STACK_FUNCTIONS,
    EvaluationScope,
    Evaluator,
    LocalValue,
    Omission,
)
from engine.hot.evaluation.stack_outputs import OutputName
from engine.hot.expressions.expression import (
    REFUSED,
    Expression,
    FunctionCall,
    is_static,
    iterate_calls,
)
from engine.hot.expressions.masking import MASK
from engine.hot.functions.cost_budget import SIZE_PER_VALUE
from engine.hot.functions.function import FunctionError
from engine.hot.functions.text import join_parts
from engine.hot.language.versions import StackFunction
from engine.hot.syntax.keyed_names import quote_name
from engine.hot.syntax.references import REFERENCE
from engine.topological_order import find_cycle, sort_topologically
from engine.words import Json

INDEX: Final = re.compile("[0-9]{1,9}")
LITERAL: Final = 'For the text "${" itself, write "$${".'
#: Maximum characters of a reference. Each dot may end the name, so all beginnings are looked up.
MAX_REFERENCE: Final = 1_000


#: Words before the name of a parameter or a local that references do not have.
SECTIONS: Final = frozenset(
    {"local", "locals", "param", "params", "parameter", "parameters", "var"}
)


def make_evaluator(
    scope: EvaluationScope, *, masked: bool = False, of_output: bool = False
) -> Evaluator:
    """Return the evaluator of the version of a scope."""
    kind = ExtendedEvaluator if scope.version.extended else Evaluator
    return kind(scope, masked=masked, of_output=of_output)


class ExtendedEvaluator(Evaluator):
    """The evaluator of Headgate's own versions. It raises no `InvalidCall`: in an output, all that
    it refuses is a warning."""

    __slots__ = ()

    def _walk(self, snippet: Json, place: str) -> "Expression | Omission":
        kind = type(snippet)
        if kind is str:
            if "${" not in snippet:
                return snippet
            return self._call("", StackFunction.INTERPOLATE, snippet, place)
        if kind is dict:
            if len(snippet) == 1:
                ((name, args),) = snippet.items()
                if name in self.table:
                    return super()._walk(snippet, place)
                self._check_spelling(name, args, place)
            items = ((key, self._walk(item, f"{place}.{key}")) for key, item in snippet.items())
            return {key: item for key, item in items if item is not OMITTED}
        return super()._walk(snippet, place)

    # -- references in strings --------------------------------------------------------------------

    def interpolate(self, text: Json, place: str) -> Expression:
        """Return a string with its references replaced; of a reference alone, the value itself."""
        parts: list[Expression] = []
        end = 0
        for found in REFERENCE.finditer(text):
            parts += [text[end : found.start()]] if found.start() > end else []
            end = found.end()
            if found[1] is None:
                parts.append("${")
                continue
            if not found[2]:
                reason = public(f'The reference "{found[0][:80]}" has no closing "}}".')
                raise FunctionError(reason, public(LITERAL))
            value = self._reference(found[1].strip())
            if found.start() == 0 and end == len(text):
                return value
            parts.append(value)
        parts += [text[end:]] if end < len(text) else []
        if all(map(is_static, parts)):
            joined = join_parts(parts)
            self.scope.budget.spend_size(len(joined))
            return joined
        return self.defer("interpolate", parts)

    def _reference(self, text: str) -> Expression:
        name, path = self._split_reference(text)
        if name == "each":
            value = self._each_value(text, path)
            path = path[1:]
        elif (local := self.scope.locals.get(name)) is not None:
            value = self._local_value(local)
        elif name not in self.scope.parameters:
            return self.defer(REFUSED, None)  # reported already, or known later
        else:
            if name in self.scope.hidden:
                self.secret = True
                if self.masked:
                    return MASK
            value = self.scope.parameters[name]
            self.spend(f"get_param {name}", value)
        return self._follow(value, path, text)

    def _split_reference(self, text: str) -> tuple[str, list[str]]:
        """Return the name, which may have dots, and the path after it. Raises FunctionError."""
        scope = self.scope
        if len(text) > MAX_REFERENCE:
            reason = f'The reference "${{{text[:80]}" has more than {MAX_REFERENCE} characters.'
            raise FunctionError(public(reason), public(LITERAL))
        parts = text.split(".")
        if parts[0] == "each" and (self.each or "each" not in scope.parameter_names):
            return "each", parts[1:]
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            if name in scope.locals or name in scope.parameters or name in scope.parameter_names:
                return name, parts[end:]
        known = [*scope.locals, *scope.known_parameters()]
        known += ["each.key", "each.value"] if self.each else []
        near = self._suggest_call(text) or self.suggest(
            parts[0] if len(parts) > 1 else text, known, "Names"
        )
        reason = f'"${{{text[:80]}}}" names neither a parameter nor a local.'
        raise FunctionError(public(reason), public(f"{near} {LITERAL}"))

    def _suggest_call(self, text: str) -> str:
        """Return what to write in place of a reference to a resource, or with the section of a
        parameter or local; "" for another."""
        scope, parts = self.scope, text.split(".")
        rest = ".".join(parts[1:])
        if parts[0] in SECTIONS and (rest in scope.locals or rest in scope.parameter_names):
            return f'Write "${{{rest}}}".'
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end])
            if name in scope.types or name in scope.keyed or name in scope.disabled:
                if end < len(parts) and (keyed := scope.keyed.get(name, {}).get(parts[end])):
                    name, end = keyed, end + 1
                if not parts[end:]:
                    return f"Write {{get_resource: {quote_name(name)}}}."
                path = ", ".join([quote_name(name), *parts[end:]])
                return f"Write {{get_attr: [{path}]}}."
        return ""

    def _each_value(self, text: str, path: list[str]) -> Expression:
        if self.each is None:
            raise FunctionError(
                public(f'"${{{text[:80]}}}" has a value only in a resource with "for_each".'),
                public(LITERAL),
            )
        if path == ["key"]:
            return self.each.key
        if not path or path[0] != "value":
            reason = public(f'"${{{text[:80]}}}" is neither each.key nor each.value.')
            raise FunctionError(reason, public("Write ${each.key}, ${each.value} or a path in it."))
        if self.each.snippet is not None:
            self.spend(f"each {self.each.base} {self.each.key}", self.each.snippet)
            return self.evaluate(self.each.snippet, f"resources.{self.each.base}.for_each")
        self.spend(f"each {self.each.base} {self.each.key}", self.each.value)
        return self.each.value

    def _follow(self, value: Expression, path: list[str], text: str) -> Expression:
        """Return the value at a path. Raises FunctionError if there is none."""
        for at, step in enumerate(path):
            if value == MASK:
                return value
            if isinstance(value, FunctionCall):
                return self.defer("select", [value, *path[at:]])
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and INDEX.fullmatch(step) and int(step) < len(value):
                value = value[int(step)]
            else:
                keys = [*value] if isinstance(value, dict) else []
                near = self.suggest(step, keys, "Keys") if keys else ""
                reason = public(f'"${{{text[:80]}}}" has no value: there is no "{step[:80]}".')
                raise FunctionError(reason, near)
        if not is_static(value):
            self.deferred += 1
        return value

    # -- locals -----------------------------------------------------------------------------------

    def get_local(self, args: Json, place: str) -> Expression:
        """Return the value of a local, or of a path in it."""
        parts = args if isinstance(args, list) else [args]
        if not parts or not all(type(one) in (str, int) for one in parts):
            form = '"get_local" takes the name of a local, or [name, key or index, ...].'
            raise FunctionError(public(form), public("Write the name without a function."))
        name, *path = parts
        local = self.scope.locals.get(str(name))
        if local is None:
            near = self.suggest(str(name), [*self.scope.locals], "Locals")
            raise FunctionError(public(f'There is no local "{name}".'), public(near))
        text = ".".join(map(str, parts))
        return self._follow(self._local_value(local), [str(one) for one in path], text)

    def _local_value(self, local: LocalValue) -> Expression:
        self.reads |= local.reads
        self.secret = self.secret or local.secret
        self.scope.budget.spend_size(local.size)
        return local.masked if self.masked and local.secret else local.expression

    # -- outputs of other stacks ------------------------------------------------------------------

    def stack_output(self, args: Json, place: str) -> Expression:
        """Return the value of an output of another stack, or of a path in it."""
        known = self.evaluate(args, place)
        if any(call.name == REFUSED for call in iterate_calls(known)):
            return self.defer(REFUSED, None)  # reported already, or known later
        if not is_static(known):
            reason = '"stack_output" takes names that are known when the stack is defined.'
            raise FunctionError(public(reason), public("Take them from parameters."))
        parts = known if isinstance(known, list) else []
        if len(parts) < 2 or not all(type(one) in (str, int) for one in parts):
            form = '"stack_output" takes [stack, output, key or index, ...].'
            raise FunctionError(public(form), public("Write for example [network, subnet_id]."))
        if self.secret:
            reason = (
                "The names must not come from a hidden parameter or a secret output:"
                " readers see dependencies."
            )
            raise FunctionError(public(reason), public("Use names that are not secret."))
        stack, output, *path = map(str, parts)
        if stack == self.scope.parameters.get("OS::stack_name"):
            reason = "A stack cannot read its own outputs."
            raise FunctionError(public(reason), public("Read the resource with get_attr."))
        found = self.scope.stack_outputs.find(OutputName(stack, output))
        if found is None:
            return self.defer(REFUSED, None)  # evaluated again with its value
        if found.secret:
            self.secret = True
            if self.masked:
                return MASK
        self.spend(f"stack_output {stack} {output}", found.value)
        return self._follow(found.value, path, ".".join(map(str, parts)))

    # -- resources with for_each ------------------------------------------------------------------

    def attribute(self, known: list[Json], place: str) -> Expression:
        names = self._find_keyed(known[0])
        if names is None:
            return super().attribute(known, place)
        return {
            key: super(ExtendedEvaluator, self).attribute([name, *known[1:]], place)
            for key, name in names.items()
        }

    def get_resource(self, args: Json, place: str) -> Expression:
        name = self.evaluate(args, place)
        names = self._find_keyed(name)
        if names is None:
            return super().get_resource(name, place)
        return {
            key: super(ExtendedEvaluator, self).get_resource(one, place)
            for key, one in names.items()
        }

    def _find_keyed(self, name: Json) -> Mapping[str, str] | None:
        """Return the names by key of all resources that a base name stands for."""
        names = self.scope.keyed.get(name) if isinstance(name, str) else None
        if names is not None:
            # Each becomes a call with a list of arguments.
            size = sum(map(len, names.values())) + 3 * SIZE_PER_VALUE * len(names)
            self.scope.budget.spend_size(size + SIZE_PER_VALUE)
        return names

    stack_functions: ClassVar[Mapping[StackFunction, Callable[..., Expression]]] = {}


ExtendedEvaluator.stack_functions = {
    **STACK_FUNCTIONS,
    StackFunction.GET_RESOURCE: ExtendedEvaluator.get_resource,
    StackFunction.GET_LOCAL: ExtendedEvaluator.get_local,
    StackFunction.INTERPOLATE: ExtendedEvaluator.interpolate,
    StackFunction.STACK_OUTPUT: ExtendedEvaluator.stack_output,
}


# -- evaluation of the section ---------------------------------------------------------------------


def evaluate_locals(named: Mapping[str, Json], scope: EvaluationScope) -> None:
    """Evaluate all locals into `scope.locals`, each after those that it reads. Faults are added to
    the findings; a local with one has no value.
    """
    if not named:
        return
    requires = {name: sorted(set(_references(one)) & named.keys()) for name, one in named.items()}
    if cycle := find_cycle(requires):
        shown = " -> ".join(cycle)
        reason = f"Circular dependency of locals: {shown}"
        scope.findings.add(f"locals.{cycle[0]}", reason, "Remove one of these references.")
    order = sort_topologically(requires)
    missing = LocalValue(FunctionCall(REFUSED, scope.version.date, None))
    scope.locals.update((name, missing) for name in named)
    for name in order:
        scope.locals[name] = _evaluate_local(name, named[name], scope)


def _evaluate_local(name: str, snippet: Json, scope: EvaluationScope) -> LocalValue:
    evaluator = ExtendedEvaluator(scope)
    evaluator.owner = name
    place = f"locals.{name}"
    expression = evaluator.evaluate(snippet, place)
    masked = expression
    if evaluator.secret:
        masked = ExtendedEvaluator(scope, masked=True).evaluate(snippet, place)
    size = _expression_size(expression, scope.budget.size_left)
    return LocalValue(expression, frozenset(evaluator.reads), evaluator.secret, masked, size)


def _expression_size(expression: Expression, limit: int) -> int:
    """Return the size including the arguments of calls; counting stops above `limit`."""
    size, waiting = 0, [expression]
    while waiting and size <= limit:
        one = waiting.pop()
        size += SIZE_PER_VALUE
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, dict):
            size += sum(map(len, one))
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, FunctionCall):
            waiting.append(one.args)
    return size


def _references(snippet: Json) -> Iterator[str]:
    """Yield all names, and beginnings of names with dots, that a snippet may read."""
    waiting = [snippet]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) and "${" in one:
            for found in REFERENCE.finditer(one):
                text = (found[1] or "").strip()
                parts = text.split(".") if len(text) <= MAX_REFERENCE else []
                yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, dict):
            if len(one) == 1 and "get_local" in one:
                args = one["get_local"]
                yield str(args[0] if isinstance(args, list) and args else args)
            waiting.extend(one.values())
