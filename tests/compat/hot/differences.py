"""Where Headgate means to differ from Heat: in which cases, and how.

The reasons are in docs/reference/heat-differences.md, by the same keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.compat.hot.comparing import Unlike

HEAT_REFUSES, WE_REFUSE = Unlike.ONLY_HEAT_REFUSES, Unlike.ONLY_WE_REFUSE
TYPE, STATUS, OUTPUTS = Unlike.ERROR_TYPE, Unlike.STATUS, Unlike.OUTPUTS
RESOURCES = Unlike.RESOURCES


@dataclass(frozen=True, slots=True)
class Difference:
    """cases: globs on the names of cases; each must match one that differs so."""

    key: str
    how: Unlike
    cases: Sequence[str]

    def covers(self, name: str, how: Unlike) -> bool:
        return how is self.how and bool(self.matching(name))

    def matching(self, name: str) -> list[str]:
        return [pattern for pattern in self.cases if fnmatchcase(name, pattern)]


DIFFERENCES: Sequence[Difference] = ()
