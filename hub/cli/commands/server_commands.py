"""headgate serve and demo."""

from pathlib import Path
from typing import Annotated

import typer

from hub.cli.exit_codes import ExitCode
from hub.cli.messages import stop

ROLES = ("api", "engine", "dispatch", "purge")
app = typer.Typer()


@app.command()
def serve(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Settings file (TOML); see config.example.toml."),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory of the embedded database.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address to listen on.")
    ] = None,
    role: Annotated[
        list[str],
        typer.Option(
            help="Process role: api, engine, dispatch or purge; repeatable. Default: all."
        ),
    ] = [],  # noqa: B006
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Number of processes with these roles. Default: one for each core, as far as"
            " memory and database connections allow; one if --role is given.",
        ),
    ] = None,
) -> None:
    """Run a server until it receives SIGTERM or Ctrl-C."""
    for one in role:
        if one not in ROLES:
            stop(
                f'--role: "{one}" is not a process role; known: {", ".join(ROLES)}', ExitCode.USAGE
            )
    from engine.errors import HeadgateError
    from hub.listen_address import LISTEN, METRICS, check_address, is_address

    roles = frozenset(role or ROLES)
    # The modules of the settings and of the server take seconds to load. What can fail at once, and
    # the first line of the log, come before.
    try:
        if listen and is_address(listen) and "api" in roles:
            check_address(listen, LISTEN)
        from hub.settings.settings import load_settings, reload_settings

        options = {
            "server.listen": listen,
            "server.processes": processes,
            "database.data_dir": data_dir,
        }
        settings = load_settings(config, options)
        if "api" in roles:
            check_address(settings.server.listen, LISTEN)
        if settings.metrics.address:
            check_address(settings.metrics.address, METRICS)
    except HeadgateError as error:
        stop(str(error), ExitCode.ERROR)
    from hub.program.start_log import log_start

    log_start(settings, roles, has_all_roles=roles == frozenset(ROLES))
    from hub.program.server_processes import serve as run_server

    raise typer.Exit(run_server(settings, roles, lambda: reload_settings(config, options)))


@app.command()
def demo(
    look: Annotated[
        bool,
        typer.Option(
            "--look",
            help="Show an example stack with waiting hooks in the dashboard, until Ctrl-C.",
        ),
    ] = False,
) -> None:
    """Create, approve, change and delete a real service.

    Takes half a minute, and needs the examples of the source tree.
    """
    from hub.cli.commands import demo

    raise typer.Exit(demo.run(demo.look if look else None))
