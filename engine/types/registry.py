"""Which resource types there are. Made once by the program, and handed on; there is no global."""

import random
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points

from engine.errors import Findings, NotFound, nearest
from engine.hot.schema import TypeSchema
from engine.types.contract import ResourceType
from engine.types.none import NoneResource
from engine.types.random_string import RandomString
from engine.types.test_resource import TestResource
from engine.types.value import Value
from engine.words import Json

ENTRY_POINTS = "headgate.resource_types"


class Registry:
    """The types by name."""

    def __init__(self, types: Iterable[ResourceType]) -> None:
        self._types = {type_.schema.name: type_ for type_ in types}
        self._schemas = {name: type_.schema for name, type_ in self._types.items()}

    def schemas(self) -> Mapping[str, TypeSchema]:
        return self._schemas

    def names(self) -> list[str]:
        return sorted(self._types)

    def get(self, name: str) -> ResourceType:
        """Raises NotFound with the nearest name."""
        found = self._types.get(name)
        if found is None:
            reason = f"The Resource Type ({name}) could not be found."
            raise NotFound(reason, remedy=nearest(name, self.names()), code="EntityNotFound")
        return found

    def check_properties(
        self, name: str, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        self.get(name).check_properties(properties, place, findings)


def built_in(randomness: random.Random, *more: ResourceType) -> Registry:
    """The types that come with headgate, `more`, and those of installed plug-ins."""
    plugged = [point.load()() for point in entry_points(group=ENTRY_POINTS)]
    own = [NoneResource(), TestResource(), RandomString(randomness), Value()]
    return Registry([*own, *more, *plugged])
