"""Settings of the template language: the cost budget of one template."""

from typing import Annotated

from pydantic import Field

from engine.hot.functions.cost_budget import CostLimits
from hub.settings.types import Bytes, Count, Section


class Language(Section):
    size: Annotated[Bytes, Field(ge=65_536, le=1_000_000_000)] = 16_777_216
    steps: Annotated[Count, Field(ge=1_000, le=10_000_000)] = 100_000
    yaql_elements: Annotated[Count, Field(le=100_000)] = 200
    yaql_bytes: Annotated[Bytes, Field(ge=1_000, le=1_000_000)] = 10_000

    def limits(self) -> CostLimits:
        return CostLimits(self.size, self.steps, self.yaql_elements, self.yaql_bytes)
