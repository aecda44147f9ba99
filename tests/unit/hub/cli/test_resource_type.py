"""The output of headgate type show."""

from rich.console import Console

from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from hub.api.orchestration.resource_types import type_document
from hub.cli.commands.resource_type import render

SCHEMA = TypeSchema(
    "Acme::Machine",
    {
        "size": Property(
            Kind.INTEGER,
            "How large.",
            required=True,
            update_allowed=True,
            constraints=(
                Constraint("range", min=1, max=5),
                Constraint("modulo", step=2, offset=1),
            ),
        ),
        "zone": Property(
            Kind.STRING,
            constraints=(Constraint("allowed_values", allowed=("a", "b")),),
            immutable=True,
            former_names=("availability_zone",),
        ),
        "ports": Property(
            Kind.LIST,
            constraints=(Constraint("length", max=3),),
            items=Property(
                Kind.MAP,
                fields={
                    "net": Property(
                        Kind.STRING, constraints=(Constraint("custom_constraint", name="net"),)
                    ),
                    "name": Property(
                        Kind.STRING,
                        constraints=(
                            Constraint("allowed_pattern", pattern="[a-z]+", description="letters"),
                        ),
                    ),
                },
            ),
        ),
    },
    {"address": Attribute(Kind.STRING, "Where it is.")},
)


def test_all_properties_and_attributes_are_shown() -> None:
    console = Console(width=140)
    with console.capture() as shown:
        console.print(render(type_document(SCHEMA)))
    lines = [" ".join(line.split()) for line in shown.get().splitlines()]
    for line in (
        "size integer required in place range 1 to 5; modulo 2 + 1 How large.",
        "zone string never one of a, b Formerly availability_zone.",
        "ports list replaces length 3 or less",
        "ports[] map",
        "ports[].net string custom_constraint net",
        "ports[].name string letters",
        "address string Where it is.",
    ):
        assert line in lines, shown.get()


def test_a_narrow_terminal_has_a_list_with_complete_names() -> None:
    console = Console(width=60)
    with console.capture() as shown:
        console.print(render(type_document(SCHEMA)), soft_wrap=True)
    for lines in (
        "  size  integer; required; in place; range 1 to 5; modulo\n    2 + 1\n      How large.\n",
        "  ports[].net  string; custom_constraint net\n",
    ):
        assert lines in shown.get(), shown.get()


def test_the_api_shows_former_names_and_constraint_texts() -> None:
    properties = type_document(SCHEMA)["properties"]
    assert properties["zone"]["former_names"] == ["availability_zone"]
    name = properties["ports"]["schema"]["*"]["schema"]["name"]
    assert name["constraints"] == [{"allowed_pattern": "[a-z]+", "description": "letters"}]
