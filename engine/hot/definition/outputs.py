"""Defines the outputs of a stack."""

from engine.hot.definition.assertions import AssertionReader
from engine.hot.definition.model import OutputDefinition
from engine.hot.evaluation.assertions import add_assertions
from engine.hot.evaluation.conditions import Conditions
from engine.hot.evaluation.evaluator import EvaluationScope
from engine.hot.evaluation.extended_evaluator import make_evaluator
from engine.hot.template.template import Template


def define_outputs(
    template: Template, conditions: Conditions, scope: EvaluationScope
) -> dict[str, OutputDefinition]:
    """Return the outputs by name. Faults are added to the findings."""
    evaluator, dialect = make_evaluator(scope, of_output=True), scope.version.dialect
    outputs: dict[str, OutputDefinition] = {}
    for name, body in template.outputs.items():
        place = f"{dialect.outputs}.{name}"
        evaluator.owner, evaluator.secret = name, False
        on: bool | None = True
        if body.condition is not None:
            on = conditions.holds(body.condition, f"{place}.{dialect.condition}")
        value = evaluator.evaluate(body.value, f"{place}.{dialect.value}") if on else None
        secret = evaluator.secret
        if on and (body.preconditions is not None or body.postconditions is not None):
            masked = make_evaluator(scope, masked=True)
            before = AssertionReader(evaluator, masked, "precondition")
            after = AssertionReader(evaluator, masked, "postcondition")
            value = add_assertions(
                before.read(body.preconditions, f"{place}.preconditions"),
                after.read(body.postconditions, f"{place}.postconditions"),
                value,
                scope.version.date,
            )
        outputs[name] = OutputDefinition(value, body.description, secret)
    return outputs
