"""The values that the methods of `Engine` receive and return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.errors import Finding, Findings
from engine.plan.draft import AdoptedResource
from engine.plan.drift import ConvergeRound
from engine.principal import UNKNOWN_PRINCIPAL, Principal
from engine.words import Json

#: Characters, as in Heat.
MAX_TAG_LENGTH = 80


def check_tags(tags: Sequence[str], findings: Findings) -> None:
    """Add a finding for each tag of a stack that is too long."""
    for tag in tags:
        if len(tag) > MAX_TAG_LENGTH:
            reason = f'Invalid tag, "{tag}" is longer than {MAX_TAG_LENGTH} characters'
            findings.add("tags", reason, "Shorten it.", "Invalid")


@dataclass(frozen=True, slots=True)
class StackRequest:
    """A request to create or update a stack.

    template: a map, or text (YAML or JSON); None with ``existing`` keeps the stored one.
    environment: a map or text; ignored when environment_files names entries of ``files``.
    tags, timeout_mins, disable_rollback: None: an update keeps the value, a create uses the
    default. existing: PATCH semantics: start from the stored template, environment and parameters.
    keep_hidden: hidden values that are sent masked keep their stored values, and parameters that
    the stored environment hides stay hidden. only, except_: globs on resource names; a partial
    update changes only the selected resources. moved: resources to rename or to take over from
    another stack without changing them. plan_digest: of the plan that the requester has seen;
    another plan is refused. "": any plan. adopted: physical resources to adopt, by resource name;
    None: no adoption. private_outputs: of an adoption: the exported stack was nested; secret
    outputs stay masked. hooks_clear: ``resource:point`` patterns of breakpoints to skip in this
    traversal; ``*``: all. hooks_add: full rules with ``at``, as in the environment's ``hooks``
    list, or ``resource:point`` texts; they apply to this traversal only. strict: warnings are
    errors. converge: an update also repairs resources that differ from their recorded state,
    according to the last observation; round: of a converge that has several. credential: the cloud
    credential that the operations use. warnings: about the keys of the request. current_region: of
    the stack, which stays if the environment of the request names none; None: that of the
    environment which `existing` starts from.
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
    adopted: Mapping[str, AdoptedResource] | None = None
    private_outputs: bool = False
    hooks_clear: Sequence[str] = ()
    hooks_add: Sequence[Json] = ()
    requested_by: Principal = UNKNOWN_PRINCIPAL
    idempotency_key: str = ""
    strict: bool = False
    converge: bool = False
    round: ConvergeRound | None = None
    credential: str = field(default="", repr=False)
    warnings: Sequence[Finding] = ()
    current_region: str | None = None

    @property
    def uses_stored(self) -> bool:
        """Whether the request is completed from the stored template version."""
        return self.existing or self.keep_hidden


@dataclass(frozen=True, slots=True)
class Move:
    """A renamed or moved resource. name: the old name. to: the new name. from_stack: name or id of
    the stack that it leaves; "" for the updated stack."""

    name: str
    to: str
    from_stack: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """An output. value: None if it cannot be evaluated; error: the reason, else None."""

    key: str
    description: str
    value: Json
    error: str | None


@dataclass(frozen=True, slots=True)
class StackValues:
    """Parameters and outputs of a stack. parameters: as text, hidden ones masked, with the pseudo
    parameters. outputs: None if they were not requested."""

    parameters: Mapping[str, str]
    outputs: Sequence[Output] | None
