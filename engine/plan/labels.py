"""Labels of workers: which workers execute the operations on a resource.

A resource has at most one label. The operator's rules give it when an operation creates or changes
the resource; some only to resources for which the environment of the stack requests it. Operations
that do not change its definition, and its delete, have the label of the last operation that did,
which is stored with the resource: they run where the resource was made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.errors import Finding, one_of
from engine.hot.environment.registry import ResourceRegistry
from engine.hot.syntax.globs import matches_glob
from engine.plan.draft import ExistingResource, Plan, PlannedNode
from engine.words import GATES, IN_PLACE_OPERATIONS, Direction, ResourceId

#: Returns the label of a resource by its type and name.
LabelOf = Callable[[str, str], str | None]
#: What to do about a label that an environment cannot request.
NONE_OFFERED = (
    "Leave it out, or ask the operator for a rule in [[engine.label_rules]] with on_request = true."
)


#: Of stacks whose environment requests no label.
NO_REQUESTS: Final = ResourceRegistry()


@dataclass(frozen=True, slots=True)
class LabelRule:
    """A rule of the operator. projects, types, resources: globs; no types or no resources: any.
    resources: names, on every level of nested stacks. label: "": such resources have none.
    on_request: only resources for which the environment of the stack requests this label."""

    label: str
    projects: Sequence[str] = ("*",)
    types: Sequence[str] = ()
    resources: Sequence[str] = ()
    on_request: bool = False

    def matches(self, type_name: str, name: str, requests: ResourceRegistry) -> bool:
        """Whether it applies to a resource, in a project to which it applies. requests: of the
        environment of the resource's stack."""
        return (
            (not self.types or _any_matches(type_name, self.types))
            and (not self.resources or _any_matches(name, self.resources))
            and (not self.on_request or requests.label_of(name) == self.label)
        )


@dataclass(frozen=True, slots=True)
class LabelRules:
    """The operator's rules. The last one that applies wins."""

    rules: Sequence[LabelRule] = ()

    def find_for(self, project: str, requests: ResourceRegistry = NO_REQUESTS) -> LabelOf | None:
        """The labels of the resources of a stack; None: no rule applies to its project. requests:
        of the environment of the stack."""
        found = self._of_project(project)
        if not found:
            return None

        def label_of(type_name: str, name: str) -> str | None:
            matching = (one.label for one in found if one.matches(type_name, name, requests))
            return next(matching, None) or None

        return label_of

    def check_requests(self, project: str, requests: ResourceRegistry) -> list[Finding]:
        """Errors about the labels that an environment requests and no rule offers."""
        offered = {one.label for one in self._of_project(project) if one.on_request}
        return [
            Finding(
                place,
                f'The label "{label}" is not offered to this project.',
                one_of(label, sorted(offered), "Offered") if offered else NONE_OFFERED,
                "Invalid",
            )
            for place, label in requests.requested_labels
            if label not in offered
        ]

    def find_unused_requests(
        self, project: str, requests: ResourceRegistry, types: Mapping[str, str | None]
    ) -> list[Finding]:
        """Warnings about requested labels that no resource gets. types: of the resources of the
        stack, by name; None: it has nested stacks, whose resources may get the label."""
        label_of = self.find_for(project, requests)
        if label_of is None:
            return []
        found = []
        for pattern, label in requests.labels:
            names = [
                name
                for name in types
                if label and matches_glob(name, pattern) and requests.label_of(name) == label
            ]
            without = {
                name: type_name
                for name in names
                if (type_name := types[name]) is not None and label_of(type_name, name) != label
            }
            if names and len(without) == len(names):
                found.append(self._warn_about(project, pattern, label, without))
        return found

    def _warn_about(
        self, project: str, pattern: str, label: str, without: Mapping[str, str]
    ) -> Finding:
        """A warning about a label that the matching resources do not get. without: their types, by
        name."""
        offers = [one for one in self._of_project(project) if one.on_request and one.label == label]
        types = sorted({type_name for one in offers for type_name in one.types})
        name, type_name = next(iter(without.items()))
        return Finding(
            f"resource_registry.resources.{pattern}.label",
            f'The label "{label}" has no effect: the rules of the operator do not give it to {name}'
            f" ({type_name}).",
            f"Remove it. {one_of('', types, 'Types with this label')}"
            if types
            else "Remove it, or ask the operator for which resources it is.",
            "NoEffect",
        )

    def _of_project(self, project: str) -> list[LabelRule]:
        """The rules that apply to a project, the last one first."""
        return [one for one in reversed(self.rules) if _any_matches(project, one.projects)]


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
