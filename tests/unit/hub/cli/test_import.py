"""Why no stack is created from existing resources: each reason names the resource and property."""

from pathlib import Path
from typing import Any

import pytest
import typer

from hub.cli.commands.import_resources import import_body, problems
from hub.cli.commands.stack_import import changes_since, planned_changes, refusals

Json = Any


def read(**more: Json) -> Json:
    resource = {
        "resource_name": "web", "physical_resource_id": "17", "properties": {"size": 1},
        "unread": {"password": "secret"}, "differences": [],
    }  # fmt: skip
    return {"resources": [resource | more], "parameters": ["web_key"], "findings": []}


FINDING = {"place": "resources[1].id", "reason": "It is gone.", "remedy": "Check the ID."}
DIFFERENCE = {"property": "size", "desired": 1, "observed": 7}


def test_what_was_not_read_is_named() -> None:
    assert list(problems(read(differences=[DIFFERENCE]) | {"findings": [FINDING]})) == [
        "resources[1].id: It is gone. Check the ID.",
        "resources.web.properties.password was not read: secret",
        "resources.web.properties.size: the template has 1, the existing resource has 7. Give the"
        " property with --properties 17=FILE, or change the resource first.",
        "parameters.web_key needs a value: -P web_key=VALUE",
    ]


def test_a_stack_needs_all_resources_without_a_difference_and_all_parameters() -> None:
    assert list(refusals(read(), {"web_key": "x"})) == []
    assert list(refusals(read(), {})) == ["parameters.web_key has no value. Use -P web_key=VALUE."]
    (line,) = refusals(read(differences=[DIFFERENCE]), {"web_key": "x"})
    assert line.startswith("resources.web.properties.size: ")
    assert len(list(refusals(read() | {"findings": [FINDING]}, {"web_key": "x"}))) == 1


def test_a_plan_that_does_more_than_import_is_refused() -> None:
    imported = {"path": "web", "imported_id": "17", "changes": {"size": {"to": 1}}}
    none: dict[str, list[Json]] = {kind: [] for kind in ("updated", "replaced", "deleted")}
    assert list(planned_changes({"added": [imported], **none})) == []
    created = {"path": "db", "imported_id": None, "changes": {"size": {"to": 1}}}
    assert list(planned_changes({"added": [imported, created], **none})) == [
        "db: the plan has it as added, not as imported (size)"
    ]
    assert list(planned_changes(none | {"replaced": [imported]})) == [
        "web: the plan has it as replaced, not as imported (size)"
    ]


def test_what_changed_after_the_plan_is_refused() -> None:
    assert list(changes_since(read(), read())) == []
    assert list(changes_since(read(), read(properties={"size": 2, "new": 1}))) == [
        "resources.web.properties.new has changed since the plan. Run the command again.",
        "resources.web.properties.size has changed since the plan. Run the command again.",
    ]
    gone = {"resources": [], "parameters": [], "findings": [FINDING]}
    assert list(changes_since(read(), gone)) == ["resources[1].id: It is gone. Check the ID."]


def test_types_and_ids_come_in_pairs(tmp_path: Path) -> None:
    file = tmp_path / "thing.yaml"
    file.write_text("size: 1\n")
    assert import_body(["A", "1", "B", "x=2"], [f"x=2={file}"]) == {
        "resources": [
            {"type": "A", "id": "1"},
            {"type": "B", "id": "x=2", "properties": {"size": 1}},
        ]
    }
    for pairs, given in ((["A"], []), (["A", "1"], ["1"]), (["A", "1"], [f"2={file}"])):
        with pytest.raises(typer.BadParameter):
            import_body(pairs, given)
    with pytest.raises(typer.BadParameter, match=r"missing\.yaml"):
        import_body(["A", "1"], [f"1={tmp_path / 'missing.yaml'}"])
