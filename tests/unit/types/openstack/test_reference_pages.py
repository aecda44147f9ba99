"""The reference pages list the properties and attributes of the types of OpenStack."""

import re
from pathlib import Path

import pytest

from tests.unit.types.openstack.clouds import types_of_all_services

REFERENCE = Path(__file__).parents[4] / "docs" / "reference"
ALL = {one.schema.name: one for one in types_of_all_services()}
TABLED = (
    "AWS::EC2::",
    "OS::Aodh::",
    "OS::Barbican::",
    "OS::Designate::",
    "OS::Keystone::",
    "OS::Manila::",
    "OS::Mistral::",
    "OS::Neutron::",
    "OS::Octavia::",
    "OS::Swift::",
    "OS::Zaqar::",
)
#: The types in a table.
TABLE = {name: one for name, one in ALL.items() if name.startswith(TABLED)}
#: The types with a section of their own.
OTHERS = {name: one.schema for name, one in ALL.items() if name not in TABLE}


@pytest.mark.parametrize("name", sorted(TABLE))
def test_the_table_says_what_is_updated_in_place(name: str) -> None:
    page = (REFERENCE / "openstack-types.md").read_text(encoding="utf-8")
    schema = TABLE[name].schema
    updated = [key for key, one in schema.properties.items() if one.update_allowed]
    in_place = ", ".join(f"`{one}`" for one in updated) or "none"
    assert f"| `{name}` | {schema.description} | {in_place} |" in page


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_a_section_lists_every_property_and_attribute(name: str) -> None:
    page = (REFERENCE / "compute-types.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
    properties, _, attributes = section.partition("| attribute |")
    schema = OTHERS[name]
    assert set(re.findall(r"^\| `(\w+)` \|", attributes, re.M)) == set(schema.attributes)
    rows = re.findall(r"^\| `(\w+)` \| ([a-z ]+) \|", properties, re.M)
    expected = {
        key: "in place" if one.update_allowed else "replace"
        for key, one in schema.current_properties()
    }
    if name == "OS::Cinder::VolumeAttachment":
        expected["volume_id"] = "replace"  # `needs_replace`
    assert dict(rows) == expected
