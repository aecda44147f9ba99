"""Records the schemas of the resource types that a running OpenStack Heat offers.

`python -m tests.openstack.heat_schemas.record DIRECTORY` asks the Heat of the test bed in
DIRECTORY and updates schemas.json; types of services that do not run there are kept as they are.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.openstack.cloud import read_identity

Json = Any
SCHEMAS = Path(__file__).with_name("schemas.json")


def main() -> None:
    (directory,) = sys.argv[1:]
    recorded = json.loads(SCHEMAS.read_text())
    write_lines(SCHEMAS, recorded | read_schemas(Path(directory)))


def read_schemas(directory: Path) -> dict[str, Json]:
    """The compact schema of each type that Heat lists."""
    with read_identity(directory / "clouds.yaml", "admin").connect() as admin:
        heat = admin.orchestration
        headers = {"Accept": "application/json"}
        listed = heat.get("/resource_types", headers=headers).json()["resource_types"]
        names = sorted(one if isinstance(one, str) else one["resource_type"] for one in listed)
        answers = {name: heat.get(f"/resource_types/{name}", headers=headers) for name in names}
        return {name: compact(one.json()) for name, one in answers.items() if one.ok}


def compact(schema: Json) -> Json:
    """The facts of Heat's schema of a type, without its descriptions."""
    support = schema["support_status"] or {}
    return {
        "support": {key: support.get(key) for key in ("status", "version")},
        "properties": {
            name: compact_property(one) for name, one in sorted(schema["properties"].items())
        },
        "attributes": {name: one.get("type") for name, one in sorted(schema["attributes"].items())},
    }


def compact_property(schema: Json, *, nested: bool = False) -> Json:
    """update: `in_place`, `replace` or `immutable`. Nested ones are updated as the property is."""
    result: Json = {"type": schema["type"], "required": schema["required"]}
    if not nested:
        in_place = "in_place" if schema["update_allowed"] else "replace"
        result["update"] = "immutable" if schema["immutable"] else in_place
    if schema.get("default") is not None:
        result["default"] = schema["default"]
    if constraints := schema.get("constraints"):
        result["constraints"] = [without_description(one) for one in constraints]
    if elements := schema.get("schema"):
        # The elements of a list have one schema, named "*".
        result["schema"] = {
            name: compact_property(one, nested=True) for name, one in sorted(elements.items())
        }
    return result


def without_description(constraint: Mapping[str, Json]) -> Json:
    return {key: value for key, value in constraint.items() if key != "description"}


def write_lines(path: Path, schemas: Mapping[str, Json]) -> None:
    """Write a line for each property and for the attributes of each type."""
    blocks = []
    for name, schema in sorted(schemas.items()):
        properties = ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(value)}"
            for key, value in schema["properties"].items()
        )
        blocks.append(
            f'{json.dumps(name)}: {{"support": {json.dumps(schema["support"])}, "properties": {{\n'
            f'{properties}}},\n "attributes": {json.dumps(schema["attributes"])}}}'
        )
    path.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


if __name__ == "__main__":
    main()
