"""CFN functions that read the stack: Ref, Fn::GetAtt and Fn::FindInMap. Each becomes the equivalent
HOT call.
"""

from typing import TYPE_CHECKING

from engine.errors import one_of
from engine.hot.expressions.expression import Expression
from engine.hot.expressions.masking import MASK
from engine.hot.functions.cfn import find_in_map
from engine.hot.functions.function import FunctionError
from engine.words import Json

if TYPE_CHECKING:
    from engine.hot.evaluation.evaluator import Evaluator


def ref(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    """Ref: the value of a parameter, or the reference of a resource."""
    scope = evaluator.scope
    if not isinstance(args, str):
        raise FunctionError(
            'The argument of "Ref" must be the name of a parameter or of a resource.'
        )
    if args in scope.types or args in scope.disabled:
        return evaluator.get_resource(args, place)
    if args in scope.parameters or args in scope.parameter_names:
        return evaluator.get_param(args, place)
    raise FunctionError(
        f'The specified reference "{args}" (in {evaluator.owner}) is incorrect.',
        one_of(args, [*scope.types, *scope.parameters], "Resources and parameters"),
    )


def get_att(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    """Fn::GetAtt: an attribute, given as [resource, attribute] or "resource.attribute"."""
    known = evaluator.evaluate(args, place)
    if isinstance(known, str):
        resource, dot, attribute = known.partition(".")
        known = [resource, attribute] if dot else []
    if not isinstance(known, list) or len(known) != 2:
        form = "[resource_name, attribute]"
        raise FunctionError(f'Arguments to "Fn::GetAtt" must be of the form {form}')
    return evaluator.attribute(known, place)


def find(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    """Fn::FindInMap: a value of the `Mappings` section; deferred if a key depends on a resource."""
    before, secret = evaluator.deferred, evaluator.secret
    evaluator.secret = False
    known = evaluator.evaluate(args, place)
    hidden, evaluator.secret = evaluator.secret, evaluator.secret or secret
    if not isinstance(known, list) or len(known) != 3:
        form = "[mapping, key, value]"
        raise FunctionError(f'Arguments to "Fn::FindInMap" must be of the form {form}')
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
