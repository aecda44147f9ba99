"""The registry of resource types. The program creates one and passes it on; none is global."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint

from engine.errors import Conflict, Findings, NotFound
from engine.hot.environment.registry import TEMPLATE_FILES, is_template_file
from engine.hot.schema.type_schema import TypeSchema, unknown_type_remedy
from engine.installed import entry_points, load_plugin, wrong_type_error
from engine.types.completion import Completions
from engine.types.contract import ResourceType
from engine.types.custom_constraints import BUILT_IN, CustomConstraint, Validator
from engine.types.delay import Delay
from engine.types.groups import groups
from engine.types.inert_resources import AccessPolicy, NoneResource
from engine.types.object_signals import NO_SERVICES, SignalServices
from engine.types.placement import Placer, load_installed
from engine.types.random_string import RandomString
from engine.types.successor import Successors
from engine.types.template_resource import TemplateResource, TemplateStack
from engine.types.test_resource import TestResource
from engine.types.value import Value
from engine.types.wait_conditions import wait_types
from engine.words import REPEATED, Json

ENTRY_POINTS = "headgate.resource_types"


class TypeRegistry:
    """The resource types by name. Raises Conflict if two have the same name."""

    def __init__(self, types: Iterable[ResourceType], *, gate: ResourceType | None = None) -> None:
        """gate: the type of the nodes of whole actions; templates cannot use it."""
        self._types: dict[str, ResourceType] = {}
        for type_ in types:
            name = type_.schema.name
            if self._types.setdefault(name, type_) is not type_:
                raise Conflict(
                    f"two resource types are called {name}",
                    place=ENTRY_POINTS,
                    remedy=f"Uninstall one; plug-ins are under the entry points {ENTRY_POINTS}.",
                )
        self._schemas = {name: type_.schema for name, type_ in self._types.items()}
        self._hidden = {gate.schema.name: gate} if gate is not None else {}
        self._template = TemplateResource()
        self._validators = _validators([*self._types.values()])

    def connect(self, completions: Completions | None, successors: Successors) -> None:
        """Set `ResourceType.completions` and `successors` of all types."""
        for type_ in self._types.values():
            type_.completions, type_.successors = completions, successors

    def schemas(self) -> Mapping[str, TypeSchema]:
        return self._schemas

    def validators(self) -> Mapping[str, Validator]:
        """The validators by name: of custom constraints, and of types that verify an
        `external_id`."""
        return self._validators

    def steps(self) -> list[str]:
        """The steps of all types that a hook can confirm, except those whose points have names of
        their own."""
        named = {step for schema in self._schemas.values() for step in schema.steps}
        return sorted(named - REPEATED)

    def cancellable_types(self) -> list[str]:
        """The types that end their operations early when these are cancelled, as patterns for SQL
        `like`."""
        return self._patterns(lambda type_: type_.cancellable or type_.supersedable)

    def supersedable_types(self) -> list[str]:
        """The types that stop waiting whenever their change ends early, as patterns for SQL
        `like`."""
        return self._patterns(lambda type_: type_.supersedable)

    def _patterns(self, applies: Callable[[ResourceType], bool]) -> list[str]:
        types = self._types.items()
        names = [name for name, type_ in types if applies(type_) or type_.has_nested_stack]
        return [*names, *(f"%{ending}" for ending in TEMPLATE_FILES)]

    def computing_types(self) -> list[str]:
        """The types whose create only computes (`ResourceType.computes_only`)."""
        return sorted(name for name, type_ in self._types.items() if type_.computes_only)

    def names(self) -> list[str]:
        return sorted(self._types)

    def get(self, name: str) -> ResourceType:
        """A type by name, or the type of a template file. Raises NotFound with the nearest name."""
        if is_template_file(name):
            return self._template
        found = self._types.get(name) or self._hidden.get(name)
        if found is None:
            reason = f"The Resource Type ({name}) could not be found."
            remedy = unknown_type_remedy(name, self.names())
            raise NotFound(reason, place="type", remedy=remedy, code="EntityNotFound")
        return found

    def has_nested_stack(self, name: str) -> bool:
        """Whether the type runs nested stacks; False for an unknown type."""
        type_ = self._template if is_template_file(name) else self._types.get(name)
        return type_ is not None and type_.has_nested_stack

    def check_properties(
        self,
        name: str,
        properties: Mapping[str, Json],
        place: str,
        findings: Findings,
        within: int | None = None,
    ) -> None:
        """within: the timeout of the stack in minutes; None: unknown or unlimited."""
        type_ = self.get(name)
        before = len(findings.all)
        type_.check_properties(properties, place, findings)
        if within is None or len(findings.all) > before:
            return
        seconds = type_.max_duration(properties)
        if seconds > within * 60:
            reason = f"{name} may take {seconds:g} s, which exceeds the stack's timeout."
            findings.add(
                place, reason, f"Use less than {within} min, or increase the stack's timeout."
            )


def _validators(types: Sequence[ResourceType]) -> dict[str, Validator]:
    """Raises Conflict if two custom constraints have the same name."""
    known: dict[str, CustomConstraint] = {}
    for constraint in [*BUILT_IN, *(one for type_ in types for one in type_.constraints)]:
        if known.setdefault(constraint.name, constraint) is not constraint:
            raise Conflict(
                f"two custom constraints are called {constraint.name}",
                place=ENTRY_POINTS,
                remedy=f"Uninstall one; plug-ins are under the entry points {ENTRY_POINTS}.",
            )
    by_type: dict[str, Validator] = {
        type_.schema.name: type_.check_external
        for type_ in types
        if type(type_).check_external is not ResourceType.check_external
    }
    return {**{name: one.validate for name, one in known.items()}, **by_type}


def built_in(
    randomness: random.Random,
    *more: ResourceType,
    gate: ResourceType | None = None,
    placer: Placer | None = None,
    services: SignalServices = NO_SERVICES,
) -> TypeRegistry:
    """The registry of the types of Headgate, `more`, and installed plug-ins.

    gate: the type of the nodes of whole actions. placer: places new members of groups; None: the
    installed plug-in, if there is one. services: that servers can send signals to.

    An entry point names a ResourceType that takes no arguments. Raises Conflict if two types have
    the same name, Unavailable for a plug-in that does not load.
    """
    plugged = [_load(point) for point in entry_points(ENTRY_POINTS)]
    own = [
        NoneResource(),
        TestResource(),
        RandomString(randomness),
        Value(),
        Delay(randomness),
        AccessPolicy(),
        TemplateStack(),
        *wait_types(services),
        *groups(placer or load_installed()),
    ]
    return TypeRegistry([*own, *more, *plugged], gate=gate)


def _load(point: EntryPoint) -> ResourceType:
    plugin = load_plugin(point, "resource type")
    if not isinstance(plugin, ResourceType):
        raise wrong_type_error(point, "resource type", ResourceType)
    return plugin
