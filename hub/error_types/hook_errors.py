"""Errors of answers to hooks, of breakpoints and of the event stream."""

from engine.errors import AnswerRefused, Conflict, Invalid, NotFound
from hub.error_types.error_type import ErrorType

HOOKS = (
    ErrorType(
        "HookAlreadyAnswered", AnswerRefused,
        "Another answer has already decided the hook, or you repeat your answer with other content."
        " `decision`, `decided_by` and `decided_at` describe the decision that counts.",
        "Accept the decision, or update the stack to change its result.",
        "decision",
        "hook pre-update of db cannot be answered: it was already answered: continue by"
        " user:ada",
        "The first answer is final; update the stack to change its result.",
    ),
    ErrorType(
        "HookExpired", AnswerRefused,
        "The deadline passed, and the rule of the hook continued or rejected.",
        "Update the stack to change the result.",
        "decision",
        "hook pre-update of db cannot be answered: its deadline passed without an answer",
        "Its rule then decided: continue.",
    ),
    ErrorType(
        "StackStopped", AnswerRefused,
        "The deadline passed, and the stack stopped.",
        "Send the request that the reason of the stack names; `headgate stack show` prints the"
        " command.",
        "decision",
        "hook pre-update of db cannot be answered: its deadline passed without an answer",
        "The stack stopped there; its reason says how to continue.",
    ),
    ErrorType(
        "HookSuperseded", AnswerRefused,
        "A newer change of the stack replaced the change that the hook belongs to.",
        "Look for a hook of the newer change.",
        "decision",
        "hook pre-update of db cannot be answered: a newer change of the stack superseded it",
        "Answer the hooks of the newer change, if it has any.",
    ),
    ErrorType(
        "HookChanged", Conflict,
        "The hook changed while your answer was checked.",
        "Read the hook again, then answer.",
        "data", "the hook's `ask` changed while the answer was checked",
        "Read the hook again, then answer it.",
    ),
    ErrorType(
        "DigestChanged", AnswerRefused,
        "The hook is not the one that you reviewed: its properties or its operation changed.",
        "Read the hook again, then answer.",
        "decision",
        "hook pre-update of db cannot be answered: the hook has changed since you read it:"
        " the digest differs",
        "Read the hook again, then answer it.",
    ),
    ErrorType(
        "AnswerInvalid", Invalid,
        "The decision is not allowed at this hook, or it does not match the other fields.",
        "Send one of the decisions that the remedy lists.",
        "decision", '"patch" is not allowed here',
        "Allowed: continue, reject, step, run, progress.",
    ),
    ErrorType(
        "DataRefused", Invalid,
        "`data` does not match the JSON schema in `ask` of the rule.",
        "Correct `data`. `headgate hook show` prints `ask`.",
        "data", '"ticket" is a required property',
        "See `ask` of the hook for the required data.",
    ),
    ErrorType(
        "InvalidBreakPointHook", Invalid,
        "A breakpoint names a point that does not exist, or a resource that the stack does not"
        " have.",
        "Correct the name. The remedy suggests a similar one or lists the points.",
        "hooks.0.on", 'Invalid hook type "pre-crate" for resource breakpoint',
        'Did you mean "pre-create"?', as_heat=True,
    ),
)  # fmt: skip
EVENTS = (
    ErrorType(
        "InvalidEventId", Invalid,
        "`Last-Event-ID` is not an ID of this server.",
        "Send the ID of the last event that you read, or none to read new events only.",
        "Last-Event-ID", "is not an ID of this stream",
        "Send the ID of the last event you read, or none to read new events only.",
    ),
    ErrorType(
        "EventsGone", Conflict,
        "The events after `Last-Event-ID` were [purged](retention.md#event-stream).",
        "Read the current state of the stacks, then connect without an ID.",
        "Last-Event-ID", "the events after this one have been deleted, so you have missed some",
        "Read the current state of the stacks, then reconnect without an ID; the retained events"
        " begin after 71234-1.",
    ),
    ErrorType(
        "EventTypeNotFound", NotFound,
        "There is no such event type.",
        "Correct the name. [Events](events.md#event-types) lists all types.",
        "type", 'there is no event type "headgate.hook.waitng"',
        'Did you mean "headgate.hook.waiting"?',
    ),
)  # fmt: skip
