"""The templates of resources of type AWS::CloudFormation::Stack, whose URL must be known when the
stack is defined."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from engine.errors import Findings
from engine.hot.definition.expansion import OpenNames
from engine.hot.definition.model import ResourceDefinition
from engine.hot.evaluation.evaluator import EvaluationScope
from engine.hot.evaluation.extended_evaluator import evaluate_locals, make_evaluator
from engine.hot.expressions.expression import REFUSED, is_static, iterate_calls
from engine.hot.expressions.masking import MASK
from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.nested.template_stack import (
    TEMPLATE_STACK,
    TEMPLATE_URL,
    is_template_address,
    stack_parameters,
)
from engine.hot.schema.properties import PUBLIC_SECRET
from engine.hot.template.template import ResourceBody, Template

URL_REMEDY: Final = "Write the URL, or take it from a parameter."


@dataclass(frozen=True, slots=True)
class TemplateAddresses:
    """Reads the URLs. scope: without types and locals."""

    template: Template
    scope: EvaluationScope
    nesting: NestedTemplates

    def read(self, body: ResourceBody, place: str, findings: Findings) -> str | None:
        """Return the URL of a resource's template; None with findings, or if the check of the
        properties reports it. place: of the property."""
        given = body.properties.get(TEMPLATE_URL) if isinstance(body.properties, dict) else None
        if given is None:
            return None
        evaluator = make_evaluator(self._scope())
        evaluator.owner, evaluator.each = body.name, body.each
        url = evaluator.evaluate(given, place)
        if evaluator.scope.findings.all:
            return None
        if not is_static(url):
            refused = any(call.name == REFUSED for call in iterate_calls(url))
            if not refused or (self.nesting.path and not self.nesting.values_later):
                reason = "must be known when the stack is defined: its template is planned with it"
                findings.add(place, reason, URL_REMEDY)
            return None
        if evaluator.secret:
            findings.add(place, *PUBLIC_SECRET)
            return None
        if not isinstance(url, str) or not is_template_address(url):
            reason = "must be a URL that begins with http:// or https://"
            findings.add(place, reason, URL_REMEDY)
            return None
        return url

    def _scope(self) -> EvaluationScope:
        """The names of all resources are known, but not what they are."""
        names = [*self.template.resources, *self.template.unreadable.resources]
        known = replace(self.scope, types=OpenNames.fromkeys(names), findings=Findings(), locals={})
        evaluate_locals(self.template.locals, known)
        return replace(known, findings=Findings())


def with_parameters_alone(resource: ResourceDefinition) -> ResourceDefinition:
    """Return a resource with a nested stack so that its properties are the parameters of this
    stack."""
    if resource.type != TEMPLATE_STACK:
        return resource
    parameters = stack_parameters(resource.properties)
    masked = resource.masked_properties
    if masked is not None:
        masked = stack_parameters(masked)
        if isinstance(parameters, Mapping) and not isinstance(masked, Mapping):
            masked = dict.fromkeys(parameters, MASK)
    return replace(resource, properties=parameters, masked_properties=masked)
