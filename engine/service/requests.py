"""What can be asked of the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from engine.plan.draft import Adopted
from engine.words import Decision, Door, How, Json, word_of


@dataclass(frozen=True, slots=True)
class StackRequest:
    """What somebody asks a stack to be.

    template: a map, or text (YAML or JSON); None with ``existing`` keeps the stored one.
    environment: a map or text; ignored when environment_files names entries of ``files``.
    tags, timeout_mins, disable_rollback: None keeps (update) or takes the default (create).
    existing: PATCH semantics, start from what is stored.
    keep_hidden: hidden values that are sent as they are shown are those that are stored, and what
    the stored environment hides stays hidden.
    only, except_: globs on resource names; a partial update changes what they choose.
    moved: resources that change their name or their stack without being touched.
    plan_digest: of the plan its author saw; refused when the plan is another now.
    adopted: real things to take over, by resource name; None: this is no adoption.
    hooks_clear: ``resource:point`` patterns whose breakpoints this traversal leaves out, ``*`` all.
    hooks_add: full rules with ``at``, as in the environment's ``hooks`` list, or
    ``resource:point`` texts; they hold for this traversal.
    credential: what the change is to act with in the cloud.
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
    keep_hidden: bool = False
    only: Sequence[str] = ()
    except_: Sequence[str] = ()
    moved: Sequence["Move"] = ()
    plan_digest: str = ""
    adopted: Mapping[str, Adopted] | None = None
    hooks_clear: Sequence[str] = ()
    hooks_add: Sequence[Json] = ()
    requested_by: str = ""
    idempotency_key: str = ""
    credential: str = field(default="", repr=False)

    @property
    def looks_back(self) -> bool:
        """Whether what it means depends on what is stored."""
        return self.existing or self.keep_hidden


@dataclass(frozen=True, slots=True)
class Move:
    """A resource's new place. from_stack: name or id of the stack it leaves; "" for this one."""

    name: str
    to: str
    from_stack: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a hook, with who gave it and through which door.

    by_token: it came with the hook's token, and nobody can tell from whom. properties: of a patch.
    extend: of a progress, how much longer. how: of a step. address: from where it came.
    credential: what the change goes on with in the cloud.
    """

    decision: Decision
    by: str
    door: Door
    reason: str = ""
    digest: str = ""
    data: Json = None
    properties: Mapping[str, Json] | None = None
    extend: timedelta | None = None
    roles: Sequence[str] = ()
    by_token: bool = False
    address: str = ""
    credential: str = field(default="", repr=False)
    how: How = How.OVER

    @property
    def word(self) -> str:
        """What is written down of it."""
        return word_of(self.decision, self.how)


@dataclass(frozen=True, slots=True)
class Output:
    """value: None when it cannot be worked out; error says why."""

    key: str
    description: str
    value: Json
    error: str | None


@dataclass(frozen=True, slots=True)
class StackView:
    """What the API shows of a stack besides its row. parameters: as text, hidden ones masked,
    pseudo parameters among them. outputs: None: not asked for."""

    parameters: Mapping[str, str]
    outputs: Sequence[Output] | None
