"""Outputs of other stacks that a template reads with `stack_output`.

The language does not read them itself: a definition with missing outputs is repeated after the
caller has read these.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from engine.errors import public
from engine.hot.functions.function import FunctionError
from engine.words import Json

#: Maximum number of outputs that a stack and its nested stacks read.
MAX_OUTPUTS: Final = 200


class OutputName(NamedTuple):
    """stack: name or ID of the other stack."""

    stack: str
    output: str


@dataclass(frozen=True, slots=True)
class StackOutput:
    """The output of another stack. source: the ID of that stack, or "" if there is none. secret:
    computed from a secret. error, remedy: why there is no value, or ""; they quote no secret.
    """

    value: Json = field(default=None, repr=False)
    secret: bool = False
    source: str = ""
    error: str = ""
    remedy: str = ""


@dataclass(slots=True)
class StackOutputs:
    """The outputs that one definition may read. read: those that it has read. missing: those that
    it needs besides; expressions with them are not evaluated."""

    known: Mapping[OutputName, StackOutput] = field(default_factory=dict)
    read: set[OutputName] = field(default_factory=set)
    missing: set[OutputName] = field(default_factory=set)

    def find(self, name: OutputName) -> StackOutput | None:
        """Return an output; None if it is missing. Raises FunctionError if there is no value."""
        found = self.known.get(name)
        wanted = self.missing if found is None else self.read
        wanted.add(name)
        if len(self.missing) + len(self.read) > MAX_OUTPUTS:
            reason = f"The stack reads more than {MAX_OUTPUTS} outputs of other stacks."
            raise FunctionError(public(reason), "", "RequestLimitExceeded")
        if found is not None and found.error:
            raise FunctionError(public(found.error), public(found.remedy))
        return found

    def find_used(self) -> dict[OutputName, StackOutput]:
        """Return the outputs with a value that were read."""
        found = {name: self.known[name] for name in sorted(self.read)}
        return {name: one for name, one in found.items() if not one.error}


def encode_stack_outputs(outputs: Mapping[OutputName, StackOutput]) -> list[Json]:
    """Return the stored form; `decode_stack_outputs` reverses it."""
    return [
        [name.stack, name.output, one.source, one.secret, one.value]
        for name, one in outputs.items()
    ]


def decode_stack_outputs(stored: Sequence[Json]) -> dict[OutputName, StackOutput]:
    return {
        OutputName(stack, output): StackOutput(value, secret, source)
        for stack, output, source, secret, value in stored
    }


def sources_of(outputs: Collection[StackOutput]) -> list[str]:
    """Return the IDs of the stacks that the outputs belong to."""
    return sorted({one.source for one in outputs})
