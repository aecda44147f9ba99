"""Defines what a stack imports: physical resources that it takes over. Checks the names in the
sections `moved` and `import`.
"""

from engine.errors import one_of
from engine.hot.definition.resource_keys import MUST_BE_KNOWN, is_reported
from engine.hot.definition.selected_resources import SelectedResources
from engine.hot.evaluation.evaluator import EvaluationScope
from engine.hot.evaluation.extended_evaluator import make_evaluator
from engine.hot.expressions.expression import is_static
from engine.hot.syntax.keyed_names import base_name
from engine.hot.template.template import Template


def define_imports(
    template: Template, selected: SelectedResources, scope: EvaluationScope
) -> dict[str, str]:
    """Return the physical IDs to adopt by the names of enabled resources. Faults are added to the
    findings."""
    evaluator, findings = make_evaluator(scope), scope.findings
    found: dict[str, str] = {}
    for one in template.imported:
        enabled, place = selected.enabled.get(one.name), f"{one.place}.id"
        if enabled is None or enabled.body.external_id is not None:
            if enabled is not None:
                reason = f'"{one.name}" has external_id, so the stack cannot import it.'
                findings.add(f"{one.place}.resource", reason, "Remove one of both.")
            continue
        evaluator.owner, evaluator.secret = one.name, False
        value = evaluator.evaluate(one.id, place)
        remedy = "Write the physical ID, or take it from a parameter."
        if evaluator.secret:
            reason = (
                "must not come from a hidden parameter or a secret output:"
                " readers can see physical IDs"
            )
            findings.add(place, reason, remedy)
        elif isinstance(value, str) and value:
            found[one.name] = value
        elif not is_reported(value):
            reason = "must be text" if is_static(value) else MUST_BE_KNOWN
            findings.add(place, reason, remedy)
    return found


def check_keys(template: Template, selected: SelectedResources, scope: EvaluationScope) -> None:
    """Report names in the sections `moved` and `import` with a key that the `for_each` does not
    have. A resource whose condition is false has its key. Keys that are not known are not checked.
    """
    expansion = selected.expansion
    entries = [(f"{one.place}.to", one.to) for one in template.moved]
    entries += [(f"{one.place}.resource", one.name) for one in template.imported]
    for place, name in entries:
        base = base_name(name)
        if base is None or name in expansion.bodies or "${" in name:
            continue  # in the template, or reported already
        if (
            base not in template.resources
            or template.resources[base].for_each is None
            or base in selected.unreadable
        ):
            continue
        names = [key for key, body in expansion.bodies.items() if base_name(body.name) == base]
        reason = f'"{name}" is not in the stack: the "for_each" of "{base}" has no such key.'
        remedy = f"{one_of(name, names, 'Resources')} Otherwise, remove the entry."
        scope.findings.add(place, reason, remedy)


def refuse_in_nested(template: Template, scope: EvaluationScope) -> None:
    """Report the sections `moved` and `import`, which only a root stack may have."""
    for section in ("moved", "import"):
        if template.document.get(section):
            reason = f'A nested template cannot have the section "{section}".'
            scope.findings.add(section, reason, "Move it to the template of the root stack.")
