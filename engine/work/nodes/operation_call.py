"""Calls the operation of a prepared node and turns its outcome into an input of the node machine.

An error in a resource type becomes a failure of its node.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from inspect import isawaitable
from typing import assert_never, get_args

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from engine.back_off import BackOff
from engine.errors import HeadgateError, Invalid, Unavailable
from engine.node.node import (
    MustConfirm,
    MustReplace,
    MustRetry,
    MustStop,
    MustWait,
    OperationFailed,
    OperationForbidden,
    Succeeded,
)
from engine.plan.resource_change import differing_names
from engine.store.encryption.secret_values import Keyring
from engine.store.traversals.traversal_credentials import scope
from engine.types.contract import (
    Call,
    Confirm,
    Done,
    Failed,
    Outcome,
    Replace,
    ResourceType,
    RunNested,
    Stopped,
    Wait,
)
from engine.types.signal_urls import SignalUrls
from engine.words import REPEATED, Json, Operation, point_of
from engine.work.nodes.assertions import failed_postcondition
from engine.work.nodes.job import NodeInput
from engine.work.nodes.prepare import HIDDEN_REASON, PreparedNode, call_of, has_secrets
from engine.work.nodes.refusals import denial_reason
from engine.work.nodes.secret_propagation import redact, secret_of, without_secret_id
from engine.work.nodes.transition_encoder import Result
from engine.work.nodes.visible_properties import keeps_secrets, kept_view


@dataclass(frozen=True, slots=True)
class OperationRetries:
    """limit: how often an operation is retried. first, max_pause: pauses before jitter.

    random: a number from 0 up to 1.
    """

    limit: int
    first: timedelta
    max_pause: timedelta
    random: Callable[[], float]

    def pause(self, attempts: int) -> timedelta:
        """The pause after a failure that `attempts` failures precede."""
        back_off = BackOff(self.first.total_seconds(), self.max_pause.total_seconds())
        return timedelta(seconds=back_off.pause(attempts + 1, self.random()))


#: Exceptions caught around code of one node. SystemExit would end the process; GeneratorExit is
#: not an Exception.
RAISED = (Exception, SystemExit, GeneratorExit)
#: What an operation that only computes returns.
OUTCOMES = get_args(Outcome)
#: NUL in JSON, the one character that PostgreSQL does not store.
NUL = b"\\u0000"

log: FilteringBoundLogger = structlog.get_logger()

#: Exchanges the credential stored with a traversal for one to use now: a trust for a token.
Exchange = Callable[[str], str | Awaitable[str]]

#: Calls the operation of a resource with a nested stack and runs the nested-stack command that it
#: returns.
RunNestedOperation = Callable[
    [PreparedNode, Call, Callable[[Call], Outcome | Awaitable[Outcome]]], Awaitable[Outcome]
]


def start(
    prepared: PreparedNode,
    keyring: Keyring | None = None,
    exchange: Exchange = str,
    run_nested: RunNestedOperation | None = None,
    signal_urls: SignalUrls | None = None,
) -> Outcome | Awaitable[Outcome]:
    """Call the node's operation. The caller awaits a coroutine, in a bounded number of tasks.

    keyring, exchange: open the traversal's credential for this call. run_nested: runs operations of
    types with a nested stack. signal_urls: make the URL at which the resource receives signals.
    """
    work = prepared.work
    operation = Operation(work.operation)
    changed = prepared.change.changed
    if operation is Operation.UPDATE and not changed:
        changed = differing_names(work.properties or {}, prepared.properties)
    run = _OPERATIONS[operation](prepared.type)
    known = signal_urls if prepared.type.schema.signals else None

    def with_credential(opened: str) -> Call:
        return call_of(work, operation, prepared.properties, changed, opened, known)

    def acts() -> bool:
        type_ = prepared.type
        if type_.has_nested_stack:
            return True
        return type_.uses_credential and type_.needs_credential(with_credential(""))

    try:
        kept = ""
        if work.credential is not None and keyring is not None and acts():
            kept = keyring.decrypt(scope(work.project, work.key.stack_id), work.credential)
        if prepared.type.has_nested_stack and run_nested is not None:
            # The nested stack stores the credential as it is, without an exchange.
            return _await_outcome(prepared, run_nested(prepared, with_credential(kept), run))
        credential = exchange(kept) if kept else ""
        if isinstance(credential, str):
            outcome = run(with_credential(credential))
        else:
            outcome = _call_with_exchanged(credential, lambda opened: run(with_credential(opened)))
    except (*RAISED, asyncio.CancelledError) as error:
        return failure(prepared, error)
    if isinstance(outcome, OUTCOMES) or not isawaitable(outcome):
        return outcome
    return _await_outcome(prepared, outcome)


_OPERATIONS: Mapping[
    Operation, Callable[[ResourceType], Callable[[Call], Outcome | Awaitable[Outcome]]]
] = {
    Operation.CREATE: lambda type_: type_.create,
    Operation.REPLACE: lambda type_: type_.create,
    Operation.UPDATE: lambda type_: type_.update,
    Operation.DELETE: lambda type_: type_.delete,
    Operation.ADOPT: lambda type_: type_.adopt,
    Operation.CHECK: lambda type_: type_.check,
    Operation.SUSPEND: lambda type_: type_.suspend,
    Operation.RESUME: lambda type_: type_.resume,
    Operation.SNAPSHOT: lambda type_: type_.snapshot,
    # Gates: engine/lifecycle/gate.py.
    Operation.BEGIN: lambda type_: type_.create,
    Operation.FINISH: lambda type_: type_.check,
}


async def _call_with_exchanged(
    credential: Awaitable[str], run: Callable[[str], Outcome | Awaitable[Outcome]]
) -> Outcome:
    outcome = run(await credential)
    return await outcome if isawaitable(outcome) else outcome


async def _await_outcome(prepared: PreparedNode, outcome: Awaitable[Outcome]) -> Outcome:
    try:
        return await outcome
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return failure(prepared, error)  # raised by the type: this task was not cancelled
    except RAISED as error:
        return failure(prepared, error)


def failure(prepared: PreparedNode, error: BaseException) -> Failed:
    """Return the outcome for a type's exception. Unexpected ones are logged with their traceback,
    without their message if it may contain a secret.
    """
    work = prepared.work
    if isinstance(error, Invalid) and has_secrets(work):
        # A finding about a nested template may contain a value computed from a secret.
        places = "; ".join(f"{one.place}: {HIDDEN_REASON}" for one in error.findings)
        return Failed(places, public_reason=places)
    if isinstance(error, HeadgateError):
        # The engine words errors about decryption and, unless they quote values, nested stacks.
        nested = prepared.type.has_nested_stack and not isinstance(error, Invalid)
        public = str(error) if nested or error.code == "Undecryptable" else ""
        return Failed(str(error), retry=isinstance(error, Unavailable), public_reason=public)
    bug = log.bind(resource=work.name, type=work.type)
    if keeps_secrets(prepared):
        where = "".join(traceback.format_tb(error.__traceback__))
        bug.error("operation.failed", error=type(error).__name__, where=where)
    else:
        bug.error("operation.failed", exc_info=error)
    reason = f"the type {work.type} failed unexpectedly (see the server's log)"
    return Failed(reason, public_reason=reason)


def judge(prepared: PreparedNode, outcome: Outcome, retrying: OperationRetries) -> NodeInput:
    """Return the machine's input for an outcome, and the state of the resource."""
    work = prepared.work
    result = Result(
        properties=prepared.properties,
        masked_properties=kept_view(prepared),
        attempts=work.attempts,
        renewed=prepared.type.schema.renewed,
    )
    unstorable = _unstorable(outcome)
    if unstorable:
        return NodeInput(OperationFailed(f"the type {prepared.work.type} {unstorable}"), result)
    outcome = without_secret_id(prepared, outcome, result.masked_properties)
    outcome = redact(prepared, outcome, result.masked_properties)
    match outcome:
        case Done(physical_id=physical_id, attributes=attributes, data=data, reason=reason):
            result.physical_id, result.attributes, result.data = physical_id, attributes, data
            result.reference = prepared.type.reference(work.name, physical_id, data)
            result.secret_attributes = secret_of(
                prepared, outcome, result.reference, result.masked_properties
            )
            result.reason = reason
            failed = failed_postcondition(prepared, result)
            return NodeInput(OperationFailed(failed) if failed else Succeeded(), result)
        case Wait(
            until=until, progress=progress, signal_resource_id=signal_resource_id, reason=reason
        ):
            result.progress, result.signal_resource_id = progress, signal_resource_id
            return NodeInput(MustWait(until, reason), result)
        case Confirm(step=step, progress=progress, seen=seen):
            refusal = _step_refusal(prepared, step)
            result.progress, result.seen = progress, seen
            return NodeInput(OperationFailed(refusal) if refusal else MustConfirm(step), result)
        case Replace():
            refusal = denial_reason(work, Operation.REPLACE)
            return NodeInput(OperationForbidden(refusal) if refusal else MustReplace(), result)
        case Failed(retry=True, reason=reason) if work.attempts < retrying.limit:
            result.progress, result.attempts = work.progress, work.attempts + 1
            result.confirmation = work.confirmation
            return NodeInput(MustRetry(work.now + retrying.pause(work.attempts), reason), result)
        case Failed(reason=reason, physical_id=physical_id, data=data):
            result.physical_id, result.data = physical_id, data
            return NodeInput(OperationFailed(reason), result)
        case Stopped(reason=reason, physical_id=physical_id, data=data):
            result.physical_id, result.data = physical_id, data
            return NodeInput(MustStop(reason), result)
        case RunNested():  # already run for types with `has_nested_stack`
            reason_text = (
                f"the type {work.type} has no nested stack, but returned a command for one"
            )
            return NodeInput(OperationFailed(reason_text), result)
        case _ as never:
            assert_never(never)


def _step_refusal(prepared: PreparedNode, step: str) -> str | None:
    """Return why a type may not ask to confirm this step, or None."""
    name = prepared.work.type
    if step not in prepared.type.schema.steps:
        return f'the type {name} returned a confirmation of "{step}", which is not one of its steps'
    if step not in REPEATED and point_of(step) in prepared.work.breakpoints_hit:
        return f'the type {name} returned a confirmation of "{step}" a second time'
    return None


#: Fields of outcomes that are stored.
_STORED = (
    "physical_id",
    "attributes",
    "data",
    "progress",
    "reason",
    "public_reason",
    "seen",
    "public_seen",
)


def _unstorable(outcome: Outcome) -> str | None:
    """Return why values of an outcome cannot be stored, or None. They fail only their resource."""
    kept = {name: getattr(outcome, name) for name in _STORED if hasattr(outcome, name)}
    try:
        written = orjson.dumps(kept)
    except TypeError as error:
        return f"returned a value that cannot be stored: {error}"
    if NUL in written and _has_nul(kept):
        return "returned a text with a NUL character, which cannot be stored"
    return None


def _has_nul(value: Json) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list | tuple) and any(_has_nul(item) for item in value)
