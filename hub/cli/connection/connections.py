"""Where a command sends its requests: options, environment variables and saved contexts."""

import os
from dataclasses import dataclass

from headgate.connection import PROJECT, URL, ClientCredentials
from hub.cli.connection.saved_contexts import (
    ContextError,
    SavedContext,
    contexts_path,
    read_contexts,
)

#: The variable with your roles, separated by commas. The server accepts it in mode none only.
ROLES = "HEADGATE_ROLES"
#: Variables with a token, or the password of --user. There are no options for these, because other
#: users of the machine can read the options of a process.
TOKEN, PASSWORD = "HEADGATE_TOKEN", "HEADGATE_PASSWORD"


@dataclass(frozen=True, slots=True)
class ResolvedConnection:
    """Where requests are sent, and with which credentials."""

    url: str
    project: str
    credentials: ClientCredentials


@dataclass(frozen=True, slots=True)
class ChosenConnection:
    """The values of options and their environment variables. Empty ones, and None, are not set.
    context: the name of a context."""

    context: str = ""
    url: str | None = None
    project: str | None = None
    user: str = ""

    def resolve(self) -> ResolvedConnection:
        """With the values of the context and the defaults. Raises ContextError."""
        return self.resolve_with(self._find_context())

    def resolve_with(self, context: SavedContext) -> ResolvedConnection:
        """Options and variables precede the values of the context. Raises ContextError."""
        roles, token, password = (_from_environment(name) for name in (ROLES, TOKEN, PASSWORD))
        if not token and not password:
            token = context.token
        return ResolvedConnection(
            self.url or context.url or URL,
            self.project or context.project or PROJECT,
            ClientCredentials(self.user or context.user, roles, token, password),
        )

    def _find_context(self) -> SavedContext:
        """The context, or an empty one.

        A current context does not apply to another server, which must not receive its token.
        """
        saved, none = read_contexts(contexts_path()), SavedContext("")
        if self.context:
            found = saved.find(self.context)
            if self.url and self.url != found.url:
                raise ContextError(
                    f'--url {self.url}: the context "{self.context}" is of {found.url}. '
                    "Use either --context or --url."
                )
            return found
        found = saved.find(saved.current) if saved.current else none
        return none if self.url and self.url != found.url else found


def _from_environment(name: str) -> str:
    value = os.environ.get(name, "")
    if not value.isprintable():
        raise ContextError(f"{name} contains control characters; remove them")
    return value
