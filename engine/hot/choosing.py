"""Which resources of a template are on, and what they are: types that there are, or templates."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.errors import Findings, nearest
from engine.hot.conditions import Conditions
from engine.hot.environment import Environment
from engine.hot.known_members import with_members
from engine.hot.nesting import Nesting, Use
from engine.hot.registry import CircularAlias, Found, is_template_file
from engine.hot.schema import TypeSchema
from engine.hot.template import ResourceBody
from engine.hot.template_types import TemplateType

ELSEWHERE = "Use one that there is, or map it to one in the environment's resource_registry."


@dataclass(slots=True)
class Chosen:
    """One resource that is on; made once and never changed (not frozen: a thousand at once).

    type: after aliases. schema: None where there is no such type, as `wrong` tells. template: where
    the type is one. decided: False while its condition reads a value that is not known yet.
    """

    body: ResourceBody
    type: str
    schema: TypeSchema | None
    template: TemplateType | None = None
    wrong: Findings = field(default_factory=Findings)
    decided: bool = True


@dataclass(slots=True)
class Choosing:
    """ends: where types lead that mean the same for every resource."""

    environment: Environment
    types: Mapping[str, TypeSchema]
    conditions: Conditions
    nesting: Nesting
    findings: Findings
    ends: dict[str, Found] = field(default_factory=dict)

    def choose(self, body: ResourceBody) -> Chosen | None:
        """None: its condition is off. Raises LimitReached."""
        words = self.conditions.version.spelling
        place = f"{words.resources}.{body.name}"
        use = Use(body.name, body.type, place, f"{place}.{words.type}")
        is_on: bool | None = True
        if body.condition is not None:
            is_on = self.conditions.holds(body.condition, f"{place}.{words.condition}")
        if is_on is False:
            return None
        chosen = self._typed(body, use)
        if is_on is None:
            chosen.decided, chosen.wrong = False, Findings()
        return chosen

    def _typed(self, body: ResourceBody, use: Use) -> Chosen:
        wrong = Findings()
        try:
            found = self._find(body)
        except CircularAlias as circle:
            wrong.add(use.of_type, f"Aliases in a circle: {circle}")
            return Chosen(body, body.type, None, wrong=wrong)
        if found is None:
            self._tell_unknown(use, wrong)
            return Chosen(body, body.type, None, wrong=wrong)
        if not is_template_file(found.type):
            registry = self.environment.registry
            schema = with_members(self.types[found.type], body, registry, self.types)
            return Chosen(body, found.type, schema)
        kind = self.nesting.open(found, use, self.environment, self.types, wrong)
        if kind is not None:
            self.nesting.check_facade(kind, found, use, self.environment, self.types, wrong)
        return Chosen(body, found.type, kind.schema if kind else None, kind, wrong)

    def _find(self, body: ResourceBody) -> Found | None:
        registry = self.environment.registry
        own = body.name in registry.by_resource
        if not own and (known := self.ends.get(body.type)) is not None:
            return known
        found = registry.find(body.type, body.name, self.types)
        if found is not None and not own:
            self.ends[body.type] = found
        return found

    def _tell_unknown(self, use: Use, wrong: Findings) -> None:
        if self.environment.wrong:
            return  # it may map it
        mapped = self.environment.registry.mapped.get(use.type)
        led = f'It is mapped to "{mapped.target}", which is none. ' if mapped else ""
        wrong.add(
            use.of_type,
            f"The Resource Type ({use.type}) could not be found.",
            led + (nearest(mapped.target if mapped else use.type, list(self.types)) or ELSEWHERE),
        )
