"""Functions of CFN templates that read the stack itself; each becomes what partial.py makes of the
HOT one."""

from typing import TYPE_CHECKING

from engine.errors import one_of
from engine.hot.cfn_functions import find_in_map
from engine.hot.expression import Expression
from engine.hot.function import Wrong
from engine.words import Json

if TYPE_CHECKING:
    from engine.hot.partial import Evaluator


def ref(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    """The value of a parameter, or the reference of a resource."""
    scope = evaluator.scope
    if not isinstance(args, str):
        raise Wrong('The argument of "Ref" must be the name of a parameter or of a resource.')
    if args in scope.types or args in scope.disabled:
        return evaluator.get_resource(args, place)
    if args in scope.parameters or args in scope.parameter_names:
        return evaluator.get_param(args, place)
    raise Wrong(
        f'The specified reference "{args}" (in {evaluator.owner}) is incorrect.',
        one_of(args, [*scope.types, *scope.parameters], "Resources and parameters"),
    )


def get_att(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    """An attribute of a resource: [resource, attribute], or "resource.attribute"."""
    known = evaluator.evaluate(args, place)
    if isinstance(known, str):
        resource, dot, attribute = known.partition(".")
        known = [resource, attribute] if dot else []
    if not isinstance(known, list) or len(known) != 2:
        form = "[resource_name, attribute]"
        raise Wrong(f'Arguments to "Fn::GetAtt" must be of the form {form}')
    return evaluator.attribute(known, place)


def find(evaluator: "Evaluator", args: Json, place: str) -> Expression:
    """A value of the ``Mappings`` section; waits when a key depends on a resource."""
    before, secret = evaluator.kept, evaluator.secret
    evaluator.secret = False
    known = evaluator.evaluate(args, place)
    hidden, evaluator.secret = evaluator.secret, evaluator.secret or secret
    if not isinstance(known, list) or len(known) != 3:
        form = "[mapping, key, value]"
        raise Wrong(f'Arguments to "Fn::FindInMap" must be of the form {form}')
    mappings = evaluator.scope.mappings
    if evaluator.kept == before:
        value = find_in_map(mappings, known, hidden=hidden)
        evaluator.spend(f"Fn::FindInMap {known!r}", value)
        return value
    name = known[0]
    if isinstance(name, str):
        mappings = {name: mappings[name]} if name in mappings else {}
    evaluator.spend(f"Fn::FindInMap {[*mappings]!r}", mappings)
    return evaluator.keep("find_in_map", [mappings, *known])
