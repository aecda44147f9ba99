"""headgate stack dependencies."""

from rich.console import Console

from hub.cli.commands.stack_dependencies import Json, readers, render


def shown(found: Json) -> str:
    console = Console(width=100)
    with console.capture() as captured:
        console.print(render(found))
    return captured.get()


def read(changed: bool) -> Json:
    return {"stack_name": "net", "stack_id": "1", "output": "subnet", "changed": changed}


def test_outputs_that_have_changed_are_marked() -> None:
    text = shown({"reads": [read(True), read(False) | {"stack_name": None}], "read_by": []})
    assert "changed since" in text and "as read" in text
    assert "No other stack reads it." in text


def test_the_stacks_that_read_it_are_named() -> None:
    found = {"reads": [], "read_by": [{"stack_name": "app"}, {"stack_name": "web"}]}
    assert readers(found) == "Read by: app, web. It cannot be deleted."
    assert "Reads no other stack." in shown(found)
