"""The operator's allow list for commands: programs, arguments, folders and variables."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase

#: As the last argument pattern: any number of further arguments.
ANY_MORE = "**"


@dataclass(frozen=True, slots=True)
class AllowedProgram:
    """An allowed program, by its absolute path.

    projects: patterns of the projects that may run it. arguments: a pattern for each argument, in
    order. folders: the folders in which it may run; a command without `cwd` runs in `/`.
    """

    path: str
    projects: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def accepts_arguments(self, arguments: Sequence[str]) -> bool:
        """Whether each argument matches its pattern, and none is missing or extra."""
        patterns = list(self.arguments)
        if patterns[-1:] == [ANY_MORE]:
            patterns.pop()
            arguments = arguments[: len(patterns)]
        return len(arguments) == len(patterns) and all(map(fnmatchcase, arguments, patterns))

    def may_run_in(self, folder: str | None) -> bool:
        if not folder:
            return True
        real = os.path.realpath(folder)
        return any(
            os.path.commonpath((real, allowed)) == allowed
            for allowed in map(os.path.realpath, self.folders)
        )


@dataclass(frozen=True, slots=True)
class RunAs:
    """The account that runs commands. uid: None: the account of the server."""

    name: str
    uid: int | None = None
    gid: int = 0
    groups: tuple[int, ...] = ()
    home: str = "/"


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """variables: patterns of the variables that templates may set. run_as: None: no command may
    run. max_output: bytes of each stream."""

    enabled: bool = False
    programs: tuple[AllowedProgram, ...] = ()
    variables: tuple[str, ...] = ()
    run_as: RunAs | None = None
    max_output: int = 65_536
    max_timeout: timedelta = timedelta(hours=1)

    def sets(self, variable: str) -> bool:
        """Whether a template may set a variable."""
        return any(fnmatchcase(variable, pattern) for pattern in self.variables)

    def file_of(self, program: str) -> str | None:
        """The file to execute for a program; None if no project may run it."""
        return allowed_file(program, tuple(one.path for one in self.programs))

    def refusal(self, project: str, argv: Sequence[str], folder: str | None) -> str:
        """The reason why a project may not run a command, as a sentence; empty if it may.

        argv: the program's path, then its arguments.
        """
        left = [one for one in self.programs if allowed_file(argv[0], (one.path,))]
        steps = (
            (f'project {project} may not run "{argv[0]}"', "projects",
             lambda one: any(fnmatchcase(project, pattern) for pattern in one.projects)),
            (f'"{argv[0]}" may not be run with these arguments', "arguments",
             lambda one: one.accepts_arguments(argv[1:])),
            (f'"{argv[0]}" may not be run in {folder}', "folders",
             lambda one: one.may_run_in(folder)),
        )  # fmt: skip
        for reason, setting, fits in steps:
            left = [one for one in left if fits(one)]
            if not left:
                place = f"[[resource_types.command.programs]] {setting}"
                return f"{reason}. The operator allows it: {place}."
        return ""


def allowed_file(program: str, allow: tuple[str, ...]) -> str | None:
    """The file to execute for `program`, without links that a template's author could change; None
    if it is not allowed.

    Links in the folder are resolved on both sides. A link as the last part is resolved only in
    `program`: a link to a listed program is allowed, but a listed link does not allow other links
    to the same target. (On small systems, many tools are links to one program.)
    """
    if not os.path.isabs(program) or "\0" in program:
        return None
    listed = {_resolve_folder(path) for path in allow}
    resolved = _resolve_folder(program)
    if resolved in listed:
        return resolved
    real = os.path.realpath(program)
    return real if real in listed else None


def _resolve_folder(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
