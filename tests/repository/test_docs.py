"""What the reference lists, held against the code."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from channels.schemas.event_schemas import SCHEMAS
from channels.schemas.event_types import expand
from engine.hooks.derived_tokens import TokenKeys
from engine.hot.environment.environment import SECTIONS
from engine.hot.environment.merging import Strategy
from engine.hot.environment.registry_section import RESOURCE_KEYS
from engine.hot.language.dialect import AWS, HOT
from engine.hot.language.versions import (
    ALIASES,
    EXTENDED_RESOURCE_KEYS,
    EXTENDED_SECTIONS,
    EXTENDED_SINCE,
    VERSIONS,
)
from engine.hot.schema.custom_constraints import CUSTOM_CHECKS
from engine.hot.schema.parameters import ParameterKind
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.template.cfn_parameters import KEYS, KINDS
from engine.hot.template.hot_parameters import KNOWN_KEYS, READERS
from engine.types.command import SCHEMA
from engine.types.contract import ResourceType
from engine.types.custom_constraints import BUILT_IN
from engine.types.http.schema import SCHEMA as HTTP
from engine.types.remote_stack import SCHEMA as STACK
from engine.types.software import ServerUrls, software_types
from engine.words import Point, Restriction
from hub.api.orchestration.actions import ACTIONS
from hub.settings.settings import Settings
from tests.unit.types.software.in_memory import InMemoryStore
from tools.type_reference import schemas

SOFTWARE = software_types(InMemoryStore(), ServerUrls(TokenKeys.single(b""), ""))
#: Fields that are told with the property they are in.
READY = {"source", "path", "values", "failed"}
DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference"


def test_every_event_is_listed_and_no_other() -> None:
    rows = re.findall(r"^\| `(headgate\.[^`]*)`", (REFERENCE / "events.md").read_text(), re.M)
    assert set().union(*map(expand, rows)) == set(SCHEMAS)


def test_every_point_of_a_hook_is_named() -> None:
    text = (REFERENCE / "hooks.md").read_text()
    named = set(re.findall(r"`((?:pre|post)-(?!stack)[a-z-]+)`", text))
    assert named == {point.value for point in Point}


def test_every_property_of_a_command_is_listed() -> None:
    text = (REFERENCE / "resource-types.md").read_text().split("## Headgate::Command")[1]
    listed = set(re.findall(r"^\| `([a-z]+)` \|", text.split("### What a command sees")[0], re.M))
    assert listed == set(SCHEMA.properties)


@pytest.mark.parametrize("type_", SOFTWARE, ids=lambda one: one.schema.name)
def test_properties_and_attributes_of_software_are_listed(type_: ResourceType) -> None:
    """Each in a row of a table of their section."""
    page = (REFERENCE / "resource-types.md").read_text()
    section = page.split("## Software\n")[1].split("\n## ")[0]
    cells = set().union(
        *(re.findall(r"`(\w+)`", row) for row in re.findall(r"^\|.*", section, re.M))
    )
    names = {*type_.schema.properties, *type_.schema.attributes}
    assert names - cells == set()
    assert type_.schema.name.removeprefix("OS::Heat::") in page.split("\n## ")[0]


@pytest.mark.parametrize(
    ("heading", "schema"), [("Headgate::HTTP", HTTP), ("OS::Heat::Stack", STACK)]
)
def test_every_property_and_attribute_of_other_types_is_listed(
    heading: str, schema: TypeSchema
) -> None:
    text = (REFERENCE / "resource-types.md").read_text().split(f"\n## {heading}\n")[1]
    listed = re.findall(r"^\| `([a-z_]+)`", text.split("\n## ")[0], re.M)
    inside = [set(one.fields or {}) for one in schema.properties.values()]
    assert set(listed) == set().union(schema.properties, schema.attributes, *inside) - READY


def _property_rows() -> Iterator[tuple[str, list[str], str, str]]:
    """Of the tables in sections about one type: type, properties, default, update."""
    page = (REFERENCE / "resource-types.md").read_text()
    for heading, section in re.findall(r"^##+ (\w+::[\w:]+)\n(.*?)(?=^##+ |\Z)", page, re.M | re.S):
        table = section.partition("| property | type | default | update | description |\n")[2]
        for row in table.split("\n\n")[0].splitlines()[1:]:
            _, names, _, default, update, *_ = re.split(r" ?(?<!\\)\| ?", row)
            yield heading, re.findall(r"`(\w+)`", names), default, update


def test_described_properties_have_the_updates_and_defaults_of_the_schemas() -> None:
    """Except those that the page describes in words, such as `see below`."""
    known, rows = schemas(), list(_property_rows())
    assert len({heading for heading, *_ in rows}) > 12 and len(rows) > 60
    for heading, names, default, update in rows:
        for name in names:
            one = known[heading].properties[name]
            if update in ("in place", "replace"):
                assert (update == "in place") == one.update_allowed, f"{heading} {name}"
            if one.required and heading != "AWS::AutoScaling::AutoScalingGroup":
                assert default == "required", f"{heading} {name}"
            if default in ("`true`", "`false`") or default.isdecimal():
                assert (one.default or 0) == json.loads(default.strip("`")), f"{heading} {name}"


def test_every_action_of_a_stack_is_named() -> None:
    text = (REFERENCE / "http-api.md").read_text()
    assert [action for action in ACTIONS if f"`{action}`" not in text] == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*/*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", page.read_text()):
        there = page.parent / target if target else page
        assert there.exists(), target
        if there.suffix == ".png":
            continue
        headings = re.findall(r"^#+ (.*)$", there.read_text(), re.M)
        known = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
        assert not anchor or anchor[1:] in known, anchor


def test_the_architecture_names_files_and_functions_that_exist() -> None:
    text = (DOCS / "explanation" / "architecture.md").read_text()
    files = set(re.findall(r"`((?:engine|headgate|hub|channels)/[\w/.-]*)`", text))
    assert [one for one in sorted(files) if not (DOCS.parent / one).exists()] == []
    journeys = re.findall(r"`([\w/]+\.(?:py|sql))` `(?:\w+\.)?(\w+)`", text)
    assert len(journeys) > 50
    unknown = [
        (path, name)
        for path, name in journeys
        if not re.search(rf"\b(?:def|class|function) {name}\b", (DOCS.parent / path).read_text())
    ]
    assert unknown == []


def _rules() -> list[tuple[str, str, str]]:
    text = (DOCS / "explanation" / "architecture.md").read_text()
    section = text.split("\n## Rules\n")[1].split("\n## ")[0]
    return re.findall(r"^\| (.*) \| (.*) \| (.*) \|$", section, re.M)[1:]


def test_the_architecture_says_where_each_rule_is_decided() -> None:
    rules = _rules()
    assert len(rules) > 20
    decided = re.compile(r"`[\w/]+\.(?:py|sql)` `\w+`")
    assert [rule for rule, _, where in rules if not decided.match(where)] == []


def test_the_file_in_which_a_rule_is_guessed_leads_to_the_one_that_has_it() -> None:
    """A file that does not decide the rule names, before its code, the file or the function."""
    lost = []
    for rule, guessed, where in _rules():
        start = (
            (DOCS.parent / guessed.strip("`")).read_text().split("\nimport ")[0].split("\nfrom ")[0]
        )
        names = [one.rpartition("/")[2] for one in re.findall(r"`([^`]+)`", where)]
        if guessed not in where and not any(name in start for name in names):
            lost.append(rule)
    assert lost == []


def test_every_function_is_listed_with_the_version_that_has_it_first() -> None:
    text = (REFERENCE / "templates.md").read_text().split("## Functions")[1]
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d{4}-\d\d-\d\d) \|", text, re.M))
    own = first_cells("templates-headgate.md", "Functions")
    assert rows.keys().isdisjoint(own)
    rows |= dict.fromkeys(own, EXTENDED_SINCE)
    first: dict[str, str] = {}
    for version, known in VERSIONS.items():
        for name in known.functions:
            first.setdefault(name, version)
    assert rows == {name: since for name, since in first.items() if name[0].islower()}


def test_every_version_of_the_language_is_listed_with_its_name() -> None:
    text = (REFERENCE / "templates.md").read_text().split("## Versions")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d{4}-\d\d-\d\d) \| (\w*) ?\|", text, re.M)
    names = {date: name for name, date in ALIASES.items()}
    dates = [date for date, version in VERSIONS.items() if version.dialect is HOT]
    assert rows == [(date, names.get(date, "")) for date in dates]


def first_cells(page: str, heading: str) -> list[str]:
    """The words in backquotes in the first cell of each row of a section's tables."""
    section = (REFERENCE / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]*) \|", section, re.M)
    return [word for cell in cells for word in re.findall(r"`(\w+)[^`]*`", cell)]


def test_every_section_and_key_of_a_template_is_listed() -> None:
    assert {*first_cells("templates.md", "Sections")} == {*HOT.sections} - {HOT.version}
    assert {*first_cells("templates.md", "Resources")} == {*HOT.resource_keys}
    assert {*first_cells("templates-headgate.md", "Sections")} == {*EXTENDED_SECTIONS}
    assert {*first_cells("templates-headgate.md", "Resource keys")} == {*EXTENDED_RESOURCE_KEYS}
    documented = first_cells("templates.md", "Parameters")
    kinds = [kind.value for kind in ParameterKind]
    assert documented == [*documented[: len(KNOWN_KEYS)], *kinds, *READERS]
    assert {*documented[: len(KNOWN_KEYS)]} == {*KNOWN_KEYS}
    outputs = (REFERENCE / "templates.md").read_text().split("| `outputs` |")[1].split("\n")[0]
    assert {*re.findall(r"`(\w+)`", outputs)} == {*HOT.output_keys}


def test_every_section_and_entry_of_an_environment_is_listed() -> None:
    text = (REFERENCE / "environments.md").read_text()
    documented = re.findall(r"^\| `(\w+)`", text.split("\n## ")[0], re.M)
    assert {*documented} == {*SECTIONS}
    files = text.split("\n## Several files\n")[1].split("\n## ")[0]
    assert [one for one in Strategy if one not in files and one != "overwrite"] == []
    registry = text.split("\n## Resource registry\n")[1].split("\n## ")[0]
    assert [one for one in (*RESOURCE_KEYS, "base_url", *Restriction) if one not in registry] == []


def test_every_custom_constraint_is_named_with_who_judges() -> None:
    section = (REFERENCE / "resource-types.md").read_text().split("\n## Custom constraints\n")[1]
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", section.split("\n## ")[0], re.M)
    documented = {word: who for cell, who in rows for word in re.findall(r"`([\w.]+)`", cell)}
    assert {name for name, who in documented.items() if "the form" in who} == {*CUSTOM_CHECKS}
    by_headgate = {name for name, who in documented.items() if who.startswith("Headgate")}
    assert by_headgate == {one.name for one in BUILT_IN}


def test_every_function_of_the_older_form_is_listed() -> None:
    text = (REFERENCE / "templates-cfn.md").read_text().split("## Functions")[1]
    listed = re.findall(r"^\| `(Ref|Fn::\w+)` \|", text, re.M)
    assert sorted(listed) == list(VERSIONS["2010-09-09"].callable_functions())
    assert [one for one in VERSIONS["2010-09-09"].conditions if f"`{one}`" not in text] == []


def test_every_key_of_the_older_form_is_listed() -> None:
    text = (REFERENCE / "templates-cfn.md").read_text()
    keys = (*AWS.sections, *AWS.resource_keys, *AWS.output_keys, *KEYS, *KINDS)
    missing = [key for key in keys if not re.search(rf"`{key}[`:]", text)]
    assert missing == []


def test_limits_that_are_settings_have_their_defaults_and_none_is_missing() -> None:
    """The numbers in the sections of limits in config.example.toml, and no others."""
    example = tomllib.loads((DOCS.parent / "config.example.toml").read_text())
    wanted = {
        (section, name): value
        for section in ("quotas", "language", "server", "observer")
        for name, value in example[section].items()
        if isinstance(value, int | float) and not isinstance(value, bool)
        if section != "server" or "_per_" in name or name == "max_body"
    }
    rows = re.findall(r"^\| .* \| ([\d,]+)[^|]* \| `\[(\w+)\] (\w+)` \|$",
                      (REFERENCE / "limits.md").read_text(), re.M)  # fmt: skip
    listed = {(section, name): int(figure.replace(",", "")) for figure, section, name in rows}
    assert len(wanted) > 20 and listed == wanted
    settings = Settings()
    for (section, name), value in listed.items():
        assert getattr(getattr(settings, section), name) == value, name
