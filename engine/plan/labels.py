"""Labels of workers: which workers execute the operations on a resource.

A resource has at most one label. The operator's rules give it when an operation creates or changes
the resource. Operations that do not change its definition, and its delete, have the label of the
last operation that did, which is stored with the resource: they run where the resource was made.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.hot.syntax.globs import matches_glob
from engine.plan.draft import ExistingResource, Plan, PlannedNode
from engine.words import GATES, IN_PLACE_OPERATIONS, Direction, ResourceId

#: The most characters of a label.
MAX_LENGTH = 100
EXAMPLE = "region=eu"
_LABEL = re.compile(
    r"[a-z0-9](?:[a-z0-9._/-]*[a-z0-9])?=[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
)

#: Returns the label of a resource by its type and name.
LabelOf = Callable[[str, str], str | None]


def label_problem(text: str) -> str:
    """Return why a text is not a label, or an empty string if it is."""
    if len(text) > MAX_LENGTH:
        return f"has {len(text)} characters, and a label has at most {MAX_LENGTH}"
    if _LABEL.fullmatch(text):
        return ""
    if "=" not in text:
        return f'"{text}" is not a label: it has no ='
    return f'"{text}" is not a label'


#: What to do about a text that is no label.
LABEL_REMEDY = (
    f"Write KEY=VALUE, such as {EXAMPLE}. The key has lower-case letters, digits and . _ - /, the"
    " value letters, digits and . _ -, and both begin and end with a letter or digit"
)


@dataclass(frozen=True, slots=True)
class LabelRule:
    """A rule of the operator. projects, types, resources: globs; no types or no resources: any.
    resources: names, on every level of nested stacks. label: "": such resources have none."""

    label: str
    projects: Sequence[str] = ("*",)
    types: Sequence[str] = ()
    resources: Sequence[str] = ()

    def matches(self, type_name: str, name: str) -> bool:
        """Whether it applies to a resource, in a project to which it applies."""
        return (not self.types or _any_matches(type_name, self.types)) and (
            not self.resources or _any_matches(name, self.resources)
        )


@dataclass(frozen=True, slots=True)
class LabelRules:
    """The operator's rules. The last one that applies wins."""

    rules: Sequence[LabelRule] = ()

    def find_for(self, project: str) -> LabelOf | None:
        """The labels of the resources of a project; None: no rule applies to the project."""
        found = [one for one in reversed(self.rules) if _any_matches(project, one.projects)]
        if not found:
            return None

        def label_of(type_name: str, name: str) -> str | None:
            return next((one.label for one in found if one.matches(type_name, name)), None) or None

        return label_of


def set_labels(plan: Plan, existing: Sequence[ExistingResource], label_of: LabelOf | None) -> Plan:
    """Return a plan with the labels of its nodes and new rows, which has none yet. label_of: of
    resources that it creates or changes; None: they have none."""
    stored = _stored_labels(existing)
    if label_of is None and not stored:
        return plan
    for node in plan.nodes:
        if node.operation in GATES:
            continue
        if changes_definition(node):
            node.label = label_of(node.type, node.name) if label_of else None
        else:
            node.label = stored.get(node.resource_id)
    if label_of is None:
        return plan
    rows = tuple(replace(row, label=label_of(row.type, row.name)) for row in plan.rows)
    return replace(plan, rows=rows)


def changes_definition(node: PlannedNode) -> bool:
    """Whether the operation of a node applies the definition of its resource."""
    return node.direction is Direction.FORWARD and node.operation not in IN_PLACE_OPERATIONS | GATES


def labels_without_node(
    plan: Plan, types: Mapping[str, str], label_of: LabelOf | None
) -> dict[str, str | None]:
    """Return the labels, by name, of the resources whose definition the plan does not change.
    types: of all resources, by name."""
    changed = {node.name for node in plan.nodes if changes_definition(node)}
    return {
        name: label_of(type_name, name) if label_of else None
        for name, type_name in types.items()
        if name not in changed
    }


def _stored_labels(existing: Sequence[ExistingResource]) -> dict[ResourceId, str]:
    labels = {row.id: row.label for row in existing if row.label}
    for row in existing:
        if row.replacement is not None and row.replacement.label:
            labels[row.replacement.id] = row.replacement.label
    return labels


def _any_matches(text: str, patterns: Sequence[str]) -> bool:
    return any(matches_glob(text, pattern) for pattern in patterns)
