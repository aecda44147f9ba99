"""The front door of the engine: accept, answer, read. Everything that hub calls is here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from engine.store.records import (
    EventRecord,
    HookRecord,
    NodeRecord,
    ResourceRecord,
    StackRecord,
    TemplateRecord,
    TraversalRecord,
)
from engine.words import Decision, Door, Json


@dataclass(frozen=True, slots=True)
class StackRequest:
    """What somebody asks a stack to be.

    template: a map, or text (YAML or JSON); None with ``existing`` keeps the stored one.
    environment: a map or text; ignored when environment_files names entries of ``files``.
    tags, timeout_mins, disable_rollback: None keeps (update) or takes the default (create).
    existing: PATCH semantics, start from what is stored.
    hooks_clear: ``resource:point`` patterns whose breakpoints this traversal leaves out, ``*`` all.
    hooks_add: full rules with ``at``, as in the environment's ``hooks`` list.
    """

    name: str = ""
    template: Json = None
    environment: Json = None
    environment_files: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Json] = field(default_factory=dict)
    clear_parameters: Sequence[str] = ()
    tags: Sequence[str] | None = None
    timeout_mins: int | None = None
    disable_rollback: bool | None = None
    existing: bool = False
    hooks_clear: Sequence[str] = ()
    hooks_add: Sequence[Json] = ()
    requested_by: str = ""
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a hook, with who gave it and through which door."""

    decision: Decision
    by: str
    door: Door
    reason: str = ""
    digest: str = ""
    data: Json = None


@dataclass(frozen=True, slots=True)
class Output:
    key: str
    description: str
    value: Json
    error: str | None


class Engine:
    """accept (create_stack, update_stack, delete_stack), answer, unset_hook; then the reads.

    Everything raises the errors of engine/errors.py: Invalid, NotFound, Conflict, AnswerRefused,
    LimitReached, Unavailable.
    """

    async def create_stack(self, project: str, request: StackRequest) -> StackRecord:
        """Validate whole, plan, store; return once durable. Conflict StackExists."""
        raise NotImplementedError

    async def update_stack(self, project: str, stack_id: UUID, request: StackRequest) -> None:
        raise NotImplementedError

    async def delete_stack(self, project: str, stack_id: UUID, requested_by: str) -> None:
        raise NotImplementedError

    async def answer(self, hook_id: UUID, answer: Answer, *, project: str | None) -> HookRecord:
        """Decide a hook. project: None when the hook's token was shown. AnswerRefused, NotFound."""
        raise NotImplementedError

    async def unset_hook(
        self, project: str, stack_id: UUID, resource_name: str, point: str, by: str
    ) -> None:
        """Heat's way to answer: Invalid with code InvalidBreakPointHook when none waits."""
        raise NotImplementedError

    async def find_stack(self, project: str, name_or_id: str) -> StackRecord:
        """By id (deleted ones too), then by name. NotFound (code EntityNotFound)."""
        raise NotImplementedError

    async def list_stacks(self, project: str, **filters: Json) -> list[StackRecord]:
        """filters: names, ids, statuses, actions (lists), tags, limit, marker, sort_key, sort_dir, show_deleted."""
        raise NotImplementedError

    async def template(self, stack: StackRecord) -> TemplateRecord:
        raise NotImplementedError

    async def shown_parameters(self, stack: StackRecord) -> dict[str, str]:
        raise NotImplementedError

    async def outputs(self, stack: StackRecord) -> list[Output]:
        raise NotImplementedError

    async def resources(self, stack: StackRecord) -> list[ResourceRecord]:
        raise NotImplementedError

    async def events(
        self, stack: StackRecord, *, marker: UUID | None, limit: int | None, newest_first: bool,
        resource_name: str | None,
    ) -> list[EventRecord]:
        """The events the Orchestration API lists (those with a status)."""
        raise NotImplementedError

    async def graph(self, stack: StackRecord) -> tuple[TraversalRecord, list[NodeRecord]]:
        raise NotImplementedError

    async def hooks(
        self, project: str, *, state: str | None, stack_id: UUID | None, point: str | None,
        limit: int, marker: UUID | None,
    ) -> list[HookRecord]:
        raise NotImplementedError

    async def hook(self, hook_id: UUID, *, project: str | None) -> HookRecord:
        """NotFound (code HookNotFound) also when it belongs to another project."""
        raise NotImplementedError
