"""What the operator lets commands be: programs, their arguments and folders, and variables."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase

#: At the end of the patterns of arguments: any further ones.
ANY_MORE = "**"


@dataclass(frozen=True, slots=True)
class AllowedProgram:
    """A program by its absolute path, and what may be done with it.

    projects: patterns of the projects that may run it. arguments: a pattern for each argument, in
    order. folders: where it may be run; commands that name no folder run in `/`.
    """

    path: str
    projects: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def takes(self, arguments: Sequence[str]) -> bool:
        """Whether each argument matches its pattern, and none is missing or left over."""
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
    """The account that commands run as. uid: None: the server's own."""

    name: str
    uid: int | None = None
    gid: int = 0
    groups: tuple[int, ...] = ()
    home: str = "/"


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """variables: patterns of the variables that templates may set. run_as: None: nothing may run.

    max_output: bytes of each stream.
    """

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
        """The file to execute for a program; None: no project may run it."""
        return allowed_file(program, tuple(one.path for one in self.programs))

    def refusal(self, project: str, argv: Sequence[str], folder: str | None) -> str:
        """Why a project may not run a command, as a sentence; empty when it may.

        argv: the program's path, then its arguments.
        """
        left = [one for one in self.programs if allowed_file(argv[0], (one.path,))]
        steps = (
            (f'project {project} may not run "{argv[0]}"', "projects",
             lambda one: any(fnmatchcase(project, pattern) for pattern in one.projects)),
            (f'"{argv[0]}" may not be run with these arguments', "arguments",
             lambda one: one.takes(argv[1:])),
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
    """The file to execute for `program`, free of links a template's author may move; None: refused.

    Links in the folder are followed on both sides. The last part is followed only toward the list:
    a name that leads to a listed program is that program, but a listed link does not let in the
    other names of what it leads to (many tools of a small system are links to one program).
    """
    if not os.path.isabs(program) or "\0" in program:
        return None
    listed = {_place(path) for path in allow}
    place = _place(program)
    if place in listed:
        return place
    real = os.path.realpath(program)
    return real if real in listed else None


def _place(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)
