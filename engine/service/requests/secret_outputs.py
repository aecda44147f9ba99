"""Which outputs of a stack contain secrets."""

from collections.abc import Mapping

from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import Expression, decode, is_static
from engine.hot.expressions.masking import contains_mask
from engine.hot.expressions.secret_leaks import iterate_texts, leaks_secret
from engine.hot.functions.cost_budget import resolution_budget
from engine.hot.functions.function import FunctionError
from engine.hot.language.versions import date_of
from engine.store.records import TemplateRecord
from engine.store.stack_queries import Shown
from engine.words import Json
from engine.work.prepare import Inputs


def secret_outputs(
    shown: Shown, view: Inputs, values: Mapping[str, Json], stored: TemplateRecord
) -> frozenset[str]:
    """Names of the secret outputs. values: of the outputs, by name. view: the stack's resources."""
    version, hidden = date_of(shown.written_in), _hidden_texts(stored)
    masked = view.masked() if view.has_secrets else None
    return frozenset(
        key
        for one in shown.outputs
        if (key := one["key"]) in values
        if one.get("secret")
        or ("secret" not in one and leaks_secret(values[key], hidden))
        or (masked is not None and _reads_secrets(decode(one["value"], version), masked))
    )


def _reads_secrets(expression: Expression, masked: Inputs) -> bool:
    if is_static(expression):
        return False
    try:
        return contains_mask(resolve(expression, masked, masked=True, budget=resolution_budget()))
    except FunctionError:  # evaluating masks can exceed a budget that the values do not
        return True


def _hidden_texts(stored: TemplateRecord) -> set[str]:
    """Values of hidden parameters, for outputs that an earlier release stored without `secret`."""
    given = {**(stored.environment.get("parameters") or {}), **stored.parameters}
    return {text for name in stored.hidden for text in iterate_texts(given.get(name))}
