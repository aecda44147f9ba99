"""Errors of requests that are not about a certain object."""

from engine.errors import Conflict, HeadgateError, Invalid, LimitReached, NotFound, Unavailable
from hub.error_types.error_type import ErrorType

TYPES = (
    ErrorType(
        "Invalid", Invalid,
        "A value, a query parameter or a body is not valid.",
        "Correct each place that `error.findings` names.",
        "", "the body cannot be read: it is incomplete, or its encoding is not Content-Encoding",
        "Send the complete body again.",
    ),
    ErrorType(
        "RequestLimitExceeded", LimitReached,
        "The request would exceed a limit or a quota. The message names the limit and the usage.",
        "Delete what you no longer need, or ask the operator to raise the limit in `[quotas]`"
        " ([Limits](limits.md)).",
        "[quotas] stacks", "with this, the project would have 101 stacks; it may have 100",
        "Delete stacks that you no longer need; the operator sets the limit.",
    ),
    ErrorType(
        "LimitReached", LimitReached,
        "The stack has as many breakpoints as it may have, was repaired as often within a day as"
        " it may be, or one sign-in in a browser has as many logins of the command line as it may"
        " have.",
        "Remove what you no longer need, as the remedy says. If a stack is repaired often, find out"
        " what changes it.",
        "", "the stack was repaired 10 times within a day, which is the limit",
        "Find out what changes it, or raise repairs_per_day of its convergence policy.",
    ),
    ErrorType(
        "RequestTooLarge", LimitReached,
        "The body is larger than `[server] max_body`, or larger than 8 KiB before you are"
        " authenticated.",
        "Send files by URL, or ask the operator to raise the limit.",
        "", "the request is too large",
        "Send at most 8388608 bytes; the limit is [server] max_body.",
    ),
    ErrorType(
        "RequestHeadersTooLarge", Invalid,
        "The address or a header of the request is too long.",
        "Use the body for longer data.",
        "", "the address or a header is too long",
        "Send at most 8190 bytes in each; use the body for longer data.",
    ),
    ErrorType(
        "RequestTimeout", Invalid,
        "The request did not arrive, or was not answered, within `[server] request_timeout`.",
        "Check whether the change was accepted. If it was not, send the request again over a faster"
        " connection.",
        "", "the request was not answered within 60 s",
        "Accepted changes were kept; check the stack before you send the request again.",
    ),
    ErrorType(
        "UnsupportedMediaType", Invalid,
        "The content encoding of the body is neither `gzip` nor `deflate`.",
        "Send the body as it is, or with one of these encodings.",
        "Content-Encoding", "the content encoding of the body is not supported",
        "Send it as it is, or with gzip or deflate.",
    ),
    ErrorType(
        "MethodNotAllowed", Conflict,
        "The route exists, but not for this method.",
        "Use one of the methods in the header `Allow`.",
        "method", "PATCH is not allowed here", "Allowed: GET, HEAD.",
    ),
    ErrorType(
        "IdempotencyKeyReused", Conflict,
        "The `Idempotency-Key` belongs to a different request of the last day.",
        "Use a new key for each new request.",
        "Idempotency-Key", "this Idempotency-Key was used for another request",
        "Use a new key for each new request.", as_heat=True,
    ),
    ErrorType(
        "TooManyRequests", LimitReached,
        "You send more requests than the operator allows, or you sent wrong passwords or tokens.",
        "Wait for the number of seconds in the header `Retry-After`.",
        "", "too many answers from Slack are under way", "Click again in a few seconds.",
    ),
    ErrorType(
        "ClientGone", Unavailable,
        "The client closed the connection before its request was processed. Nothing was changed.",
        "Send the request again.",
        "", "the client closed the connection before its request was processed",
        "Send the request again.",
    ),
    ErrorType(
        "InternalError", HeadgateError,
        "This is a bug in Headgate. Nothing that was acknowledged is lost.",
        "Ask the operator to look up the ID of the request in the log of the server, and report the"
        " bug.",
        "", "this is a fault of the server",
        "See its log under the ID req-6ff4f2ab-4c4b-4a0e-9ad0-1f0f2a3d5c11.",
    ),
    ErrorType(
        "Unavailable", Unavailable,
        "A part of the system that the request needs, for example the database, does not respond.",
        "Send the same request again after the number of seconds in the header `Retry-After`.",
        "[database]", "the database cannot be used now: ConnectionRefusedError",
        "Try again; check that PostgreSQL runs and can be reached",
    ),
    ErrorType(
        "CellUnavailable", Unavailable,
        "The [cell](../how-to/run-at-scale.md#cells) of the project is not available. Projects of"
        " other cells are served. A list of all projects has this type in a warning.",
        "Send the request again after the number of seconds in the header `Retry-After`.",
        "[cells] databases", 'the cell "north" is not available',
        "Send the request again after the time in Retry-After; the log of the server has the"
        " reason.",
    ),
    ErrorType(
        "ProjectMoving", Unavailable,
        "The project is [being moved to another cell](../how-to/run-at-scale.md#move-a-project)."
        " Changes are refused until it has arrived. A change with a token and no project in its"
        " URL, for example the answer to a hook, gets this error while any project moves and"
        " no cell accepts the token.",
        "Send the request again after the number of seconds in the header `Retry-After`.",
        "[cells] databases", 'the project "web" is being moved to another cell',
        "Send the request again after the time in Retry-After.",
    ),
    ErrorType(
        "CellsNotAgreed", Unavailable,
        "The project is new, and the [cells](../how-to/run-at-scale.md#add-a-cell) have not all"
        " been available since `[cells]` was changed.",
        "Send the request again later.",
        "[cells] revision",
        "the cells have not agreed to revision 3 of [cells] yet, and until then no project is"
        " added",
        "Send the request again after the time in Retry-After; the log of the server has the"
        " reason.",
    ),
    ErrorType(
        "OutdatedPlacement", Unavailable,
        "The project is new, and this process has an earlier revision of `[cells]` than the cells"
        " have.",
        "Ask the operator to restart the process with the current settings.",
        "[cells] revision",
        "this process has revision 2 of [cells], and the cells have 3, so it creates no projects",
        "Restart the process with the current settings.",
    ),
    ErrorType(
        "ProjectInNoCell", NotFound,
        "The server has [cells](../how-to/run-at-scale.md#cells), and none of them has the"
        " project.",
        "Ask the operator to name the project in `projects` of one of `[[cells.databases]]`.",
        "path", 'the project "web" is in no cell of this server',
        "Ask the operator to add the project to `projects` of a cell in [[cells.databases]].",
    ),
)  # fmt: skip
