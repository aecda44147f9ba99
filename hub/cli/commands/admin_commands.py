"""headgate admin: all of its commands."""

from hub.cli.commands import admin, admin_audit, admin_cells

app = admin.app
app.add_typer(admin_audit.app)
app.add_typer(admin_cells.app)
