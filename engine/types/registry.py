"""Which resource types there are. Made once by the program, and handed on; there is no global."""

import random
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint

from engine.errors import Conflict, Findings, NotFound, nearest
from engine.hot.environment.registry import TEMPLATE_FILES, is_template_file
from engine.hot.schema.type_schema import TypeSchema
from engine.installed import entry_points, make, misfit
from engine.types.contract import ResourceType
from engine.types.custom_constraints import BUILT_IN, CustomConstraint, Validator
from engine.types.delay import Delay
from engine.types.groups import groups
from engine.types.inert_resources import AccessPolicy, NoneResource
from engine.types.placement import Placer, installed
from engine.types.random_string import RandomString
from engine.types.template_resource import TemplateResource
from engine.types.test_resource import TestResource
from engine.types.value import Value
from engine.types.wait_conditions import WAITING
from engine.words import REPEATED, Json

ENTRY_POINTS = "headgate.resource_types"


class Registry:
    """The types by name. Raises Conflict when two have one name."""

    def __init__(self, types: Iterable[ResourceType], *, gate: ResourceType | None = None) -> None:
        """gate: the stack's own type; templates cannot name it."""
        self._types: dict[str, ResourceType] = {}
        for type_ in types:
            name = type_.schema.name
            if self._types.setdefault(name, type_) is not type_:
                raise Conflict(
                    f"two resource types are called {name}",
                    remedy=f"Uninstall one; plug-ins are under the entry points {ENTRY_POINTS}.",
                )
        self._schemas = {name: type_.schema for name, type_ in self._types.items()}
        self._hidden = {gate.schema.name: gate} if gate is not None else {}
        self._template = TemplateResource()
        self._validators = _validators([*self._types.values()])

    def schemas(self) -> Mapping[str, TypeSchema]:
        return self._schemas

    def validators(self) -> Mapping[str, Validator]:
        """Who is asked about values: by the names of custom constraints, and by those of the types
        that look for things that are there already."""
        return self._validators

    def steps(self) -> list[str]:
        """Of all types: the steps inside operations that somebody may be asked to confirm; without
        those whose points have names of their own."""
        named = {step for schema in self._schemas.values() for step in schema.steps}
        return sorted(named - REPEATED)

    def giving_up(self) -> list[str]:
        """The types that give up waiting when their change is ended early, as patterns of SQL."""
        types = self._types.items()
        given = [name for name, type_ in types if type_.gives_up or type_.nests]
        return [*given, *(f"%{ending}" for ending in TEMPLATE_FILES)]

    def names(self) -> list[str]:
        return sorted(self._types)

    def get(self, name: str) -> ResourceType:
        """A template's file is a type as well. Raises NotFound with the nearest name."""
        if is_template_file(name):
            return self._template
        found = self._types.get(name) or self._hidden.get(name)
        if found is None:
            reason = f"The Resource Type ({name}) could not be found."
            raise NotFound(reason, remedy=nearest(name, self.names()), code="EntityNotFound")
        return found

    def check_properties(
        self,
        name: str,
        properties: Mapping[str, Json],
        place: str,
        findings: Findings,
        within: int | None = None,
    ) -> None:
        """within: minutes that the whole stack may take; None: not known, or any time."""
        type_ = self.get(name)
        before = len(findings.all)
        type_.check_properties(properties, place, findings)
        if within is None or len(findings.all) > before:
            return
        seconds = type_.longest(properties)
        if seconds > within * 60:
            reason = f"{name} may take {seconds:g} s, which exceeds the stack's timeout."
            findings.add(place, reason, f"Let it take less than {within} min, or the stack more.")


def _validators(types: Sequence[ResourceType]) -> dict[str, Validator]:
    """Raises Conflict when two custom constraints have one name."""
    known: dict[str, CustomConstraint] = {}
    for constraint in [*BUILT_IN, *(one for type_ in types for one in type_.constraints)]:
        if known.setdefault(constraint.name, constraint) is not constraint:
            raise Conflict(
                f"two custom constraints are called {constraint.name}",
                remedy=f"Uninstall one; plug-ins are under the entry points {ENTRY_POINTS}.",
            )
    by_type: dict[str, Validator] = {
        type_.schema.name: type_.check_external
        for type_ in types
        if type(type_).check_external is not ResourceType.check_external
    }
    return {**{name: one.broken for name, one in known.items()}, **by_type}


def built_in(
    randomness: random.Random,
    *more: ResourceType,
    gate: ResourceType | None = None,
    placer: Placer | None = None,
) -> Registry:
    """The types that come with headgate, `more`, and those of installed plug-ins.

    gate: the stack's own type. placer: says where new members of groups come to be; None: the
    plug-in that is installed, if one is.

    An entry point names a ResourceType that is made without arguments. Raises Conflict when two
    types have one name, Unavailable for a plug-in that does not load.
    """
    plugged = [_load(point) for point in entry_points(ENTRY_POINTS)]
    own = [
        NoneResource(),
        TestResource(),
        RandomString(randomness),
        Value(),
        Delay(randomness),
        AccessPolicy(),
        *WAITING,
        *groups(placer or installed()),
    ]
    return Registry([*own, *more, *plugged], gate=gate)


def _load(point: EntryPoint) -> ResourceType:
    made = make(point, "resource type")
    if not isinstance(made, ResourceType):
        raise misfit(point, "resource type", ResourceType)
    return made
