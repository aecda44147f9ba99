"""The resources of a template that its conditions do not disable."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.hot.definition.condition_filter import ConditionFilter, EnabledResource
from engine.hot.definition.expansion import Expansion, OpenNames, expand
from engine.hot.definition.template_stacks import TemplateAddresses
from engine.hot.environment.environment import Environment
from engine.hot.evaluation.conditions import Conditions
from engine.hot.evaluation.evaluator import EvaluationScope
from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.template.template import Template


@dataclass(frozen=True, slots=True)
class SelectedResources:
    """enabled: by name, with `for_each` expanded. disabled: names of the others, and of a
    `for_each` whose resources are all disabled. unreadable: names of resources whose body or keys
    cannot be read.
    """

    enabled: Mapping[str, EnabledResource]
    disabled: frozenset[str]
    expansion: Expansion
    unreadable: frozenset[str]

    def undecided_types(self) -> dict[str, str]:
        """Return the types of the resources whose condition reads an unknown value."""
        return {name: one.type for name, one in self.enabled.items() if not one.decided}

    def undecided_parameters(self) -> dict[str, frozenset[str]]:
        """Return the names of the parameters of the nested stacks of these resources."""
        return {
            name: frozenset(one.template.schema.properties)
            for name, one in self.enabled.items()
            if not one.decided and one.template is not None and one.body.external_id is None
        }

    def names(self) -> list[str]:
        """Return the names of all resources, also of disabled ones, for suggestions."""
        return [*self.enabled, *sorted(self.unreadable), *sorted(self.disabled)]

    def schemas(self) -> dict[str, TypeSchema | None]:
        """Return the schemas of the enabled resources; None for those that could not be read."""
        schemas = {name: one.schema for name, one in self.enabled.items()}
        schemas |= dict.fromkeys(self.unreadable)
        return OpenNames(schemas) if self.expansion.unknown else schemas


def select_resources(
    template: Template,
    environment: Environment,
    types: Mapping[str, TypeSchema],
    conditions: Conditions,
    nesting: NestedTemplates,
    scope: EvaluationScope,
) -> SelectedResources:
    """Expand `for_each`, select the enabled resources and resolve their types. Faults are added to
    the findings. Raises LimitReached.

    scope: without types and locals.
    """
    expansion = expand(template, scope, nesting)
    addresses = TemplateAddresses(template, scope, nesting)
    choosing = ConditionFilter(environment, types, conditions, nesting, scope.findings, addresses)
    enabled: dict[str, EnabledResource] = {}
    for name, body in expansion.bodies.items():
        if (one := choosing.select(body)) is not None:
            enabled[name] = one
    disabled = frozenset(expansion.bodies.keys() - enabled.keys())
    for name, made in [*expansion.names.items()]:
        if made and disabled.issuperset(made.values()):
            disabled |= {name}
            del expansion.names[name]
    unreadable = template.unreadable.resources | expansion.unknown
    return SelectedResources(enabled, disabled, expansion, unreadable)
