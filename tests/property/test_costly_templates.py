"""Costly templates are defined or refused, each in a process with little memory and time.

The kernel ends the process when its template takes more CPU time than `MAX_CALCULATIONS`
reference calculations.
"""

import json
import os
import resource
import subprocess
import sys

import pytest

from engine.errors import Invalid
from engine.hot.definition.stack import define_stack
from engine.hot.environment.environment import parse_environment
from engine.hot.syntax.document import read_document
from engine.hot.template.template import parse_template
from tests.support.costly_templates import COSTLY_TEMPLATES
from tests.support.cpu_limits import limit_cpu_time, seconds_of_calculations
from tests.support.template_builders import CostlyTemplate
from tests.unit.hot.hot_support import PSEUDO, TYPES, no_findings

#: The CPU time of a template, in reference calculations; the memory of its process, in bytes.
MAX_CALCULATIONS, MAX_MEMORY_BYTES = 700, 600_000_000


def outcome(costly: CostlyTemplate) -> list[str]:
    """The findings; empty if the template can be defined."""
    try:
        define_stack(
            template=parse_template(read_document(costly.text, "template")),
            environment=parse_environment(read_document(costly.environment, "environment")),
            parameters=costly.parameters,
            files=costly.files,
            pseudo=PSEUDO,
            types=TYPES,
            check_properties=no_findings,
        )
    except Invalid as invalid:
        return [str(one) for one in invalid.findings]
    return []


def define_all() -> None:
    """Fork a limited process for each template, which prints the name and the findings."""
    for name, costly in COSTLY_TEMPLATES.items():
        if pid := os.fork():
            os.waitpid(pid, 0)
            continue
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        limit_cpu_time(seconds_of_calculations(MAX_CALCULATIONS))
        print(json.dumps([name, outcome(costly)]), flush=True)
        return


@pytest.fixture(scope="module")
def findings() -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import define_all; define_all()"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {name: found for name, found in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", COSTLY_TEMPLATES)
def test_a_costly_template_is_defined_or_refused_within_its_limits(
    name: str, findings: dict[str, list[str]]
) -> None:
    assert name in findings, "its process had used too much CPU time or memory"
    found, expected = findings[name], COSTLY_TEMPLATES[name].finding
    assert any(expected in one for one in found) if expected else not found
    assert all(len(one) < 6_000 for one in found)
