"""headgate stack: all of its commands."""

from hub.cli.commands import (
    stack,
    stack_breakpoints,
    stack_dependencies,
    stack_drift,
    stack_export,
    stack_import,
    stack_snapshots,
    stack_versions,
)

app = stack.app
for more in (
    stack_export,
    stack_import,
    stack_breakpoints,
    stack_drift,
    stack_dependencies,
    stack_versions,
):
    app.add_typer(more.app)
app.add_typer(stack_snapshots.app, name="snapshot")
