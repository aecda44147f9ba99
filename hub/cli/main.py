"""The command line: `headgate`.

This module loads no command; see hub/cli/lazy_commands.py.
"""

import gc
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer._click.exceptions import NoArgsIsHelpError, NoSuchOption, UsageError

from hub.cli.exit_codes import ExitCode, epilog
from hub.cli.help_texts import MAX_WIDTH
from hub.cli.lazy_commands import CommandSource, LazyGroup
from hub.cli.messages import asks_for_json, complain, is_json, use_json
from hub.cli.signals import SIGNALS, code_of_abort, end_by_signal, is_broken_pipe
from hub.cli.standard_streams import (
    UNWRITABLE,
    discard_output,
    prepare_streams,
    undecodable_word,
)

#: Packages that only an installation of the server has completely.
SERVER_PACKAGES = ("hub", "engine", "channels")
#: Groups: name -> module and one-line help. A test compares the help with that of the group.
GROUPS: Mapping[str, tuple[str, str]] = {
    "stack": ("stack_commands", "Create, update, show, list and delete stacks."),
    "resource": ("resource", "List, show, mark, protect and signal resources."),
    "hook": ("hook", "List, show and answer hooks."),
    "observation": ("observation", "Report changes of physical resources."),
    "observation-credential": (
        "observation_credential",
        "Hand over, show and delete the credential for observations of OpenStack.",
    ),
    "subscription": ("subscription", "Manage subscriptions and deliveries."),
    "type": ("resource_type", "List and show resource types."),
    "template": ("template", "Validate templates, and check them in editors."),
    "token": ("token", "Create, list and revoke tokens."),
    "context": ("login", "List and choose saved servers and projects."),
    "admin": ("admin_commands", "Administer a server: keys, tokens, audit log, database."),
}
#: Commands that are in no group.
SINGLE: Mapping[str, tuple[str, str]] = {
    "serve": ("server_commands", "Run a server until it receives SIGTERM or Ctrl-C."),
    "demo": ("server_commands", "Create, approve, change and delete a real service."),
    "man": ("man_pages", "Write manual pages of all commands to a directory."),
    "watch": ("progress_commands", "Follow a stack until its action ends."),
    "why": ("progress_commands", "Explain what a stack is waiting for."),
    "graph": ("progress_commands", "Show the graph of a stack's current traversal as a tree."),
    "events": ("progress_commands", "List the events of a stack."),
    "login": (
        "login",
        "Sign in with a token or a browser, and save the login with the server and the project.",
    ),
    "logout": ("login", "End a login, and delete its token from this machine."),
    "import": ("import_resources", "Print a template that imports existing resources."),
    "quota": ("project_commands", "Show the quotas of the project and their usage."),
    "usage": ("project_commands", "Show what the project used on each day, in UTC."),
}
COMMANDS: Mapping[str, CommandSource] = {
    name: CommandSource(
        f"hub.cli.commands.{module}", text, is_app=known is GROUPS and name != "context"
    )
    for known in (GROUPS, SINGLE)
    for name, (module, text) in known.items()
}


#: The beginning of the message about an unknown command.
_NO_COMMAND = re.compile(r"No such command '([^']*)'\.")


class HeadgateGroup(LazyGroup):
    sources = COMMANDS

    def help_epilog(self) -> str:
        from hub.cli.examples import format_examples

        return f"{format_examples('')}\n\n{self.epilog}"

    def main(self, args: Sequence[str] | None = None, *others: Any, **settings: Any) -> Any:
        """Run a command, print its usage errors as its other messages, and exit."""
        before = is_json()
        use_json(asks_for_json(sys.argv[1:] if args is None else args))
        try:
            return self._run(args, *others, **settings)
        finally:
            use_json(before)

    def _run(self, args: Sequence[str] | None, *others: Any, **settings: Any) -> Any:
        if not settings.get("standalone_mode", True):
            return super().main(args, *others, **settings)
        try:
            code = super().main(args, *others, **settings | {"standalone_mode": False})
        except UsageError as error:
            code = ExitCode.USAGE
            _show_usage_error(error)
        except typer.Abort as abort:  # at a question
            code = code_of_abort(abort)
            text = "interrupted" if code == ExitCode.INTERRUPTED else "the input has ended"
            complain(f"{text}; nothing was changed", code)
        except SystemExit as end:
            code = ExitCode.BROKEN_PIPE if is_broken_pipe(end) else end.code
        sys.exit(code if isinstance(code, int) else 0)


def _show_usage_error(error: UsageError) -> None:
    if unknown := _NO_COMMAND.match(error.message):
        from hub.cli.examples import suggest_command

        path = error.ctx.command_path if error.ctx is not None else ""
        if near := suggest_command(unknown[1], path.partition(" ")[2]):
            error.message = f"{unknown[0]} {near}"
    if isinstance(error, NoSuchOption) and (place := _place_of(error)):
        error.message = f"{error.message}. {place}"
    if not is_json() or isinstance(error, NoArgsIsHelpError):
        error.show()
        return
    command = error.ctx.command_path if error.ctx is not None else "headgate"
    remedy = f"`{command} --help` shows the arguments and options."
    complain(error.format_message(), ExitCode.USAGE, {"remedy": remedy})


def _place_of(error: NoSuchOption) -> str:
    """Where an option that commands have is to be written, if it stands before the command."""
    if error.ctx is None or not hasattr(error.ctx.command, "commands"):
        return ""
    from hub.cli.options import option_names

    if error.option_name not in option_names():
        return ""
    return f"Write it after the command: `{error.ctx.command_path} COMMAND {error.option_name} ...`"


app = typer.Typer(
    cls=HeadgateGroup,
    help="Apply infrastructure changes as a graph, and pause them for approval.",
    epilog=epilog(),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": MAX_WIDTH},
)


def installed_version() -> str:
    """Of the server, or of the command line alone."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("headgate")
    except PackageNotFoundError:
        return version("headgate-cli")


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"headgate {installed_version()}")
        raise typer.Exit


@app.callback()
def headgate(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None: ...


def run() -> None:
    """The console script."""
    # What modules create stays until the end. The default threshold examines it again and again.
    gc.set_threshold(50_000, 50, 50)
    prepare_streams()
    use_json(asks_for_json(sys.argv[1:]))
    try:
        _run()
    except KeyboardInterrupt:
        end_by_signal(ExitCode.INTERRUPTED)
        sys.exit(ExitCode.INTERRUPTED)
    except SystemExit as end:
        if end.code in SIGNALS:
            end_by_signal(ExitCode(end.code))
        raise


def _run() -> None:
    if word := undecodable_word():
        encoding = sys.getfilesystemencoding()
        stop_process(f"{word} is not valid in the encoding {encoding}. Write it in this"
                     " encoding, or rename the file.", ExitCode.USAGE)  # fmt: skip
    try:
        app()
    except OSError as error:
        if error.errno not in UNWRITABLE or error.filename is not None:
            raise
        discard_output()
        text = f"the output cannot be written: {error.strerror}. The command may have been executed"
        stop_process(f"{text}; check the result before you repeat it.", ExitCode.ERROR)
    except ModuleNotFoundError as error:
        from importlib.util import find_spec
        from itertools import takewhile

        of_server = (error.name or "").split(".")[0] in SERVER_PACKAGES
        if not of_server or find_spec("hub.program") is not None:
            raise
        command = " ".join(takewhile(lambda word: not word.startswith("-"), sys.argv[1:]))
        stop_process(
            f"`headgate {command}` needs the server, which headgate-cli does not contain. Install"
            " it in place of headgate-cli: `pipx install headgate`.",
            ExitCode.ERROR,
        )


def stop_process(message: str, code: ExitCode) -> NoReturn:
    complain(message, code)
    sys.exit(code)


if __name__ == "__main__":
    run()
