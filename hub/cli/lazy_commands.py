"""Commands that are loaded when they are called.

Building every command takes longer than most commands run, so a group knows only the module, the
name and the one-line help of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class CommandSource:
    """module: has the command in its `app`. help: the first line of its help. is_app: whether `app`
    is the command itself."""

    module: str
    help: str
    is_app: bool = True

    def load(self, name: str) -> "Command":
        """The command with everything below it, and examples in each help."""
        from hub.cli.empty_values import refuse_empty_values
        from hub.cli.examples import add_examples
        from hub.cli.help_texts import use_plain_help
        from hub.cli.malformed_pairs import refuse_malformed_pairs

        command: Command = typer.main.get_group(import_module(self.module).app)
        if not self.is_app:
            command = command.commands[name]  # type: ignore[attr-defined] # it is a group
        command.name = name
        use_plain_help(command)
        refuse_malformed_pairs(command)
        refuse_empty_values(command)
        add_examples(command, name)
        return command

    def stub(self, name: str) -> "Command":
        """What a list of commands shows of it."""
        return TyperCommand(name, short_help=self.help, help=self.help, rich_markup_mode=None)


class LazyCommands(dict[str, Any]):
    """Name -> command, which is loaded when it is read."""

    def __init__(self, sources: Mapping[str, CommandSource]) -> None:
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
    """A group of such commands. sources: of a subclass."""

    sources: Mapping[str, CommandSource] = {}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands(self.sources)

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
