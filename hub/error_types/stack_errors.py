"""Errors about stacks and their changes."""

from engine.errors import Conflict, Invalid
from hub.error_types.error_type import ErrorType

TYPES = (
    ErrorType(
        "ActionInProgress", Conflict,
        "A change of the stack, or an operation on the resource, has not ended.",
        "Wait until it ends, or [stop it](../how-to/undo.md#end-a-running-change).",
        "resource", "Resource db has an operation in progress.",
        "Mark it after the operation has ended.", as_heat=True,
    ),
    ErrorType(
        "StackExists", Conflict,
        "The project already has a stack with this name.",
        "Choose another name, or update that stack.",
        "stack_name", "The Stack (web) already exists.",
        "Choose another name, or update that stack.", as_heat=True,
    ),
    ErrorType(
        "StackInUse", Conflict,
        "Other stacks read the outputs of this stack.",
        "Delete or update these stacks first.",
        "stack", "Stack network cannot be deleted: its outputs are read by web, db.",
        "Delete these stacks first, or update them so that they do not read it.", as_heat=True,
    ),
    ErrorType(
        "StackOutputGone", Conflict,
        "The stack whose output is read was deleted while the request was processed.",
        "Send the request again.",
        "stack_output", "A stack whose output this stack reads has been deleted meanwhile.",
        "Send the request again.", as_heat=True,
    ),
    ErrorType(
        "PlanChanged", Conflict,
        "The stack has changed since the plan was made, so the digest does not match.",
        "Make a new plan, check it, and send its digest.",
        "plan_digest", "the plan has changed since the dry run: the stack is different now",
        "Do another dry run (--dry-run), check its plan and send its digest.", as_heat=True,
    ),
    ErrorType(
        "PlanRefused", Invalid,
        "A policy, a protection or a restriction forbids a part of the plan. The message names the"
        " resource, and who or what forbids the change.",
        "Change the template, or remove the protection or restriction if you may.",
        "resources.db.lifecycle.prevent_destroy",
        '"db" has prevent_destroy: replace refused (flavor changed)',
        "Undo the change that replaces it, or set prevent_destroy: false.", as_heat=True,
    ),
    ErrorType(
        "NotSupported", Invalid,
        "The stack or the action does not have what the request needs, for example a running change"
        " to cancel. The reason says what is missing.",
        "Follow the remedy.",
        "", "Cancelling update when stack is UPDATE_COMPLETE is not supported.",
        "Only an action in progress can be ended.", as_heat=True,
    ),
    ErrorType(
        "ResourceActionNotSupported", Invalid,
        "The type of the resource accepts no signal of this kind.",
        "To answer a hook, send `unset_hook`. For other signals, use a type that accepts them.",
        "", "signal is not supported for resource.",
        'To answer a waiting hook, send its point: {"unset_hook": "pre-create"}.', as_heat=True,
    ),
    ErrorType(
        "InvalidAction", Invalid,
        "The `Action` of a request to the metadata server is not known.",
        "Send `DescribeStackResource`.",
        "Action", 'the action "ListStacks" is not supported', "Ask for DescribeStackResource.",
    ),
    ErrorType(
        "Undecryptable", Conflict,
        "An encrypted value cannot be decrypted, because its key is in none of the key files.",
        "Ask the operator to add the old key to `fallback_key_files`.",
        "stack.parameters",
        "an encrypted value in stack.parameters of stack 0d4f6a52-1f6e-4a0b-8a55-6f1d2f1a9f0e"
        " cannot be decrypted: it was encrypted with the key 5d0c9f2a",
        "Name the file with that key in [credentials] key_file or fallback_key_files.",
        as_heat=True,
    ),
)  # fmt: skip
