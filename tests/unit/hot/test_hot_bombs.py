"""Templates that would cost much: each is done or refused, in a process that may use little.

It is killed when one of them takes more than its seconds of processor time.
"""

import json
import resource
import subprocess
import sys

import pytest

from engine.errors import Invalid
from engine.hot.definition.stack import define_stack
from engine.hot.environment.environment import parse_environment
from engine.hot.syntax.document import read_document
from engine.hot.template.template import parse_template
from tests.unit.hot.bomb_support import Bomb
from tests.unit.hot.bombs import BOMBS
from tests.unit.hot.hot_support import PSEUDO, TYPES, nothing_to_say

#: Seconds of processor time for one; bytes of memory for all.
MOST_TIME, MOST_MEMORY = 6, 600_000_000


def outcome(bomb: Bomb) -> list[str]:
    """What is said of it; nothing, when it can be defined."""
    try:
        define_stack(
            template=parse_template(read_document(bomb.text, "template")),
            environment=parse_environment(read_document(bomb.environment, "environment")),
            parameters=bomb.parameters,
            files=bomb.files,
            pseudo=PSEUDO,
            types=TYPES,
            check_properties=nothing_to_say,
        )
    except Invalid as invalid:
        return [str(one) for one in invalid.findings]
    return []


def tried() -> None:
    """In a process of its own: each is tried in turn, and told of as it is through."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for name, bomb in BOMBS.items():
        used = resource.getrusage(resource.RUSAGE_SELF)
        end = int(used.ru_utime + used.ru_stime) + 1 + MOST_TIME
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        print(json.dumps([name, outcome(bomb)]), flush=True)


@pytest.fixture(scope="module")
def told() -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import tried; tried()"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {name: said for name, said in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", BOMBS)
def test_it_is_done_or_refused(name: str, told: dict[str, list[str]]) -> None:
    assert name in told, "the process ended before it was through, or in it"
    said, wanted = told[name], BOMBS[name].said
    assert any(wanted in one for one in said) if wanted else not said
    assert all(len(one) < 6_000 for one in said)
