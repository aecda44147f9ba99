"""Commands that are loaded and built when they are called.

Building every command takes longer than most commands run, so the program knows only the module,
the name and the one-line help of each, and a group only the functions of its commands.
"""

import inspect
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperInfo

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem


class Source(Protocol):
    """Where a command comes from."""

    def load(self, name: str) -> "Command":
        """The command, which builds those below it when they are read."""

    def stub(self, name: str) -> "Command":
        """What a list of commands shows of it."""


@dataclass(frozen=True, slots=True)
class CommandSource:
    """module: has the command in its `app`. help: the first line of its help. is_app: whether `app`
    is the command itself."""

    module: str
    help: str
    is_app: bool = True

    def load(self, name: str) -> "Command":
        app = import_module(self.module).app
        if self.is_app:
            return RegisteredSource(TyperInfo(app), name).load(name)
        return registered_sources(app)[name].load(name)

    def stub(self, name: str) -> "Command":
        return _stub(name, self.help)


@dataclass(frozen=True, slots=True)
class RegisteredSource:
    """A function or a group that a Typer application has registered. path: the words that call
    it."""

    info: CommandInfo | TyperInfo
    path: str

    def load(self, name: str) -> "Command":
        command = self._build()
        command.name = name
        _complete(command, self.path)
        return command

    def _build(self) -> "Command":
        if isinstance(self.info, CommandInfo):
            return typer.main.get_command_from_info(
                self.info, pretty_exceptions_short=False, rich_markup_mode=None
            )
        app = self.info.typer_instance or typer.Typer()
        empty, info = copy(app), copy(self.info)
        empty.registered_commands, empty.registered_groups = [], []
        info.typer_instance, info.cls = empty, LazyGroup
        group = typer.main.get_group_from_info(
            info, pretty_exceptions_short=False, suggest_commands=True, rich_markup_mode=None
        )
        if isinstance(group, LazyGroup):
            group.use_sources(registered_sources(app, self.path))
        return group

    def stub(self, name: str) -> "Command":
        from hub.cli.help_texts import summary

        if isinstance(self.info, CommandInfo):
            text = self.info.help or inspect.getdoc(self.info.callback) or ""
        else:
            text = typer.main.solve_typer_info_help(self.info)
        return _stub(name, summary(text))


def registered_sources(app: typer.Typer, path: str = "") -> dict[str, Source]:
    """The commands of an application by name, with those of groups without a name. path: the words
    that call the application."""
    found: dict[str, Source] = {}
    for command in app.registered_commands:
        function_name = getattr(command.callback, "__name__", "")
        name = command.name or typer.main.get_command_name(function_name)
        found[name] = RegisteredSource(command, f"{path} {name}".strip())
    for group in app.registered_groups:
        name = typer.main.solve_typer_info_defaults(group).name or ""
        if name:
            found[name] = RegisteredSource(group, f"{path} {name}".strip())
        elif group.typer_instance is not None:
            found |= registered_sources(group.typer_instance, path)
    return found


def _complete(command: "Command", path: str) -> None:
    """Add to a command what all have."""
    from hub.cli.empty_values import refuse_empty_values
    from hub.cli.examples import add_examples
    from hub.cli.help_texts import use_plain_help
    from hub.cli.malformed_pairs import refuse_malformed_pairs

    use_plain_help(command)
    refuse_malformed_pairs(command)
    refuse_empty_values(command)
    add_examples(command, path)


def _stub(name: str, text: str) -> "Command":
    return TyperCommand(name, short_help=text, help=text, rich_markup_mode=None)


class LazyCommands(dict[str, Any]):
    """Name -> command, which is loaded when it is read."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        super().__init__(dict.fromkeys(sources))
        self._sources = sources

    def __getitem__(self, name: str) -> Any:
        if super().__getitem__(name) is None:
            self[name] = self._sources[name].load(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def values(self) -> Any:
        return {name: self[name] for name in self}.values()

    def items(self) -> Any:
        return {name: self[name] for name in self}.items()


class LazyGroup(TyperGroup):
    """A group of such commands. sources: of a subclass, or see `use_sources`."""

    sources: Mapping[str, Source] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.use_sources(self.sources)

    def use_sources(self, sources: Mapping[str, Source]) -> None:
        """Take the commands from there."""
        self.sources, self.commands = sources, LazyCommands(sources)

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        self._listing().format_help(ctx, formatter)

    def shell_complete(self, ctx: "Context", incomplete: str) -> "list[CompletionItem]":
        return self._listing().shell_complete(ctx, incomplete)

    def help_epilog(self) -> str | None:
        """The text at the end of its help."""
        return self.epilog

    def _listing(self) -> TyperGroup:
        """This group without its commands: only their names and help."""
        return TyperGroup(
            name=self.name,
            commands={name: one.stub(name) for name, one in self.sources.items()},
            params=self.params,
            help=self.help,
            epilog=self.help_epilog(),
            rich_markup_mode=self.rich_markup_mode,
            rich_help_panel=self.rich_help_panel,
        )
