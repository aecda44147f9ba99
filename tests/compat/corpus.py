"""Counts how many templates of a folder Headgate accepts: `python -m tests.compat.corpus FOLDER`.

Parameters have no values, so only what a template itself says is checked. The reasons of refusals
are listed by number, with the first template of each.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import Finding, Invalid
from engine.hot.schema.type_schema import TypeSchema
from engine.principal import principal_of_name
from hub.api.orchestration.stack_requests import stack_request
from hub.api.orchestration.validation import validate_template
from hub.cli.inputs.files import InputError
from hub.cli.inputs.template_bodies import template_body
from hub.program.wiring import make_limits
from hub.settings.settings import Settings
from tests.unit.types.calls import registry
from tests.unit.types.openstack.clouds import types_of_all_services

UNREADABLE = re.compile(r"[\w./-]*/[\w./-]*")
SUFFIXES = frozenset({".yaml", ".yml", ".template", ".hot"})
VERSION = re.compile(
    rb"^\s*[\"']?(heat_template_version|HeatTemplateFormatVersion|AWSTemplateFormatVersion)",
    re.MULTILINE,
)


@dataclass
class Counts:
    """accepted, refused: templates. unreadable: they refer to files that the folder does not have,
    or are no YAML. reasons: of refusals, with the first template of each.
    """

    accepted: int = 0
    refused: int = 0
    unreadable: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add_reason(self, reason: str, template: str) -> None:
        self.reasons[reason] += 1
        self.examples.setdefault(reason, template)


def templates_in(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder that have a template version."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file() and VERSION.search(path.read_bytes()):
            yield path


def summary(one: Finding) -> str:
    """Return the reason of a refusal without names of the template."""
    return re.sub(r"\"[^\"]*\"|'[^']*'", '"..."', one.reason)[:120]


def count(folder: Path, types: Mapping[str, TypeSchema]) -> Counts:
    """Validate the templates of a folder with these resource types."""
    limits, found = make_limits(Settings()), Counts()
    for path in templates_in(folder):
        name = str(path.relative_to(folder))
        try:
            body = {"stack_name": "s", **template_body(path)}
        except InputError as error:
            found.unreadable += 1
            found.add_reason(UNREADABLE.sub("...", f"unreadable: {error}")[:120], name)
            continue
        try:
            request = stack_request(body, existing=False, requested_by=principal_of_name("corpus"))
            validate_template(request, "p", types, limits, show_nested=True)
        except Invalid as error:
            found.refused += 1
            for reason in {summary(one) for one in error.findings}:
                found.add_reason(reason, name)
        else:
            found.accepted += 1
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    cloud = {one.schema.name: one.schema for one in types_of_all_services()}
    with chdir(options.folder):  # files of the whole folder may be read
        found = count(Path.cwd(), {**registry().schemas(), **cloud})
    print(f"{found.accepted} accepted, {found.refused} refused, {found.unreadable} unreadable")
    for reason, number in found.reasons.most_common():
        print(f"{number:5} {reason}  ({found.examples[reason]})")


if __name__ == "__main__":
    main(sys.argv[1:])
