"""Saved contexts: servers, projects and tokens that the command line uses without options.

They are in one file that only its owner can read.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

#: The variable with the path of the file.
FILE = "HEADGATE_CONTEXTS"


#: The remedy of an invalid file.
REMEDY = "Correct it, or remove it and sign in again."


class ContextError(Exception):
    """The file or a context cannot be used; with the remedy."""


@dataclass(frozen=True, slots=True)
class SavedContext:
    """Empty values are not set. expires_at: of the token of a login with an OpenID provider."""

    url: str
    project: str = ""
    user: str = ""
    token: str = field(default="", repr=False)
    expires_at: str = ""


@dataclass(frozen=True, slots=True)
class SavedContexts:
    """current: the name of one of them, or empty."""

    current: str = ""
    contexts: Mapping[str, SavedContext] = field(default_factory=dict)

    def find(self, name: str) -> SavedContext:
        """Raises ContextError."""
        if name in self.contexts:
            return self.contexts[name]
        known = ", ".join(self.contexts) or "none"
        raise ContextError(f'there is no context "{name}"; saved: {known}. Save it with '
                           f"`headgate login --context {name}`.")  # fmt: skip

    def add(self, name: str, context: SavedContext) -> "SavedContexts":
        """With this context, which becomes the current one."""
        return SavedContexts(name, {**self.contexts, name: context})

    def select(self, name: str) -> "SavedContexts":
        """Raises ContextError."""
        self.find(name)
        return replace(self, current=name)

    def log_out(self, name: str) -> "SavedContexts":
        """Without the token of a context. Raises ContextError."""
        without = replace(self.find(name), token="", expires_at="")
        return replace(self, contexts={**self.contexts, name: without})

    def remove(self, name: str) -> "SavedContexts":
        """Raises ContextError."""
        self.find(name)
        left = {other: one for other, one in self.contexts.items() if other != name}
        return SavedContexts("" if self.current == name else self.current, left)


def contexts_path() -> Path:
    """``$HEADGATE_CONTEXTS``, or contexts.json in the user's directory of settings."""
    if chosen := os.environ.get(FILE):
        return Path(chosen)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "headgate" / "contexts.json"


def read_contexts(path: Path) -> SavedContexts:
    """No contexts if the file does not exist. Raises ContextError."""
    try:
        with path.open() as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                remedy = f"Run `chmod 600 {path}`."
                raise ContextError(f"{path}: other users may read the tokens in it. {remedy}")
            document = json.load(file)
    except FileNotFoundError:
        return SavedContexts()
    except OSError as error:
        raise ContextError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ContextError(f"{path}: is not valid JSON: {error}. {REMEDY}") from error
    try:
        contexts = {name: _context(one) for name, one in document["contexts"].items()}
        return SavedContexts(str(document["current"]), contexts)
    except (KeyError, TypeError, AttributeError) as error:
        raise ContextError(f"{path}: does not have the form of contexts. {REMEDY}") from error


def _context(values: Mapping[str, Any]) -> SavedContext:
    """Raises TypeError."""
    if not all(isinstance(one, str) and one.isprintable() for one in values.values()):
        raise TypeError
    return SavedContext(**values)


def write_contexts(path: Path, saved: SavedContexts) -> None:
    """Replace the file, with mode 0600. Raises ContextError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            json.dump(_document(saved), file, indent=2)
            file.write("\n")
        os.replace(file.name, path)
    except OSError as error:
        raise ContextError(f"{path}: cannot be written: {error.strerror}") from error


def _document(saved: SavedContexts) -> dict[str, object]:
    """Without `expires_at` if it is not set, because older releases cannot read it."""
    contexts = {
        name: {key: value for key, value in asdict(one).items() if value or key != "expires_at"}
        for name, one in saved.contexts.items()
    }
    return {"current": saved.current, "contexts": contexts}
