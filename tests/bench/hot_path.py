"""The files that figures depend on most, and whether they have changed since figures were measured.

A digest covers a file's code without comments, docstrings and white space, so that editing these
does not make figures out of date.
"""

import ast
import hashlib
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Json = Any
#: Patterns of SQL routines, of stores with statements that every change executes, of the node
#: machine, of the loops of workers and dispatchers, of their channels, and of reading templates.
PATTERNS = (
    "engine/store/routines/[1-6]_*.sql",
    *(
        f"engine/store/{name}.py"
        for name in (
            "audit/audit_log", "connection", "database", "hooks/deadlines",
            "hooks/hook_lists", "hooks/locked_hooks", "hooks/step_modes", "projects/quotas",
            "resources/current_resources", "resources/resource_rows", "stacks/events",
            "stacks/stack_lists", "stacks/stack_locks", "stacks/stack_rows", "stacks/templates",
            "traversals/advance", "traversals/end", "traversals/graphs", "traversals/start",
        )
    ),
    *(
        f"engine/work/{name}.py"
        for name in (
            "hook_decisions", "nodes/claim_limits", "nodes/claim_pace", "nodes/hook_opening",
            "nodes/job", "nodes/lane_signal", "nodes/node_runner", "nodes/operation_call",
            "nodes/prepare", "nodes/runs", "nodes/step_queue", "nodes/transition_encoder",
            "nodes/worker", "timers",
        )
    ),
    "engine/node/*.py",
    "engine/service/hooks/answer_batches.py",
    "engine/hot/syntax/*.py",
    *(
        f"channels/{name}.py"
        for name in (
            "amqp/publisher", "delivery_queue", "dispatcher", "result_writer", "webhook/client",
            "webhook/sign",
        )
    ),
    *(
        f"channels/store/{name}.py"
        for name in ("claim", "deliveries", "delivery_results", "digests", "publish", "stream")
    ),
)  # fmt: skip
#: The digest of a file if parts of one document were measured with different versions of it.
MIXED = "mixed"
_SQL_COMMENT = re.compile(r"--[^\n]*")


def digests(root: Path) -> dict[str, str]:
    """Digest of each file of the hot path of a checkout, by path."""
    found = {path for pattern in PATTERNS for path in root.glob(pattern)}
    return {str(path.relative_to(root)): digest(path) for path in sorted(found)}


def digest(path: Path) -> str:
    text = path.read_text()
    code = python_code(text) if path.suffix == ".py" else _SQL_COMMENT.sub("", text)
    return hashlib.sha256("".join(code.split()).encode()).hexdigest()[:12]


def python_code(text: str) -> str:
    """The source without comments and docstrings."""
    lines = text.splitlines(keepends=True)
    for (first, start), (last, end) in sorted((*_comments(text), *_docstrings(text)), reverse=True):
        head, tail = lines[first - 1][:start], lines[last - 1][end:]
        lines[first - 1 : last] = [head + tail]
    return "".join(lines)


_Span = tuple[tuple[int, int], tuple[int, int]]


def _comments(text: str) -> Iterator[_Span]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start, token.end


def _docstrings(text: str) -> Iterator[_Span]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as found):
                assert found.end_lineno is not None and found.end_col_offset is not None
                start, end = found.col_offset, found.end_col_offset
                yield (found.lineno, start), (found.end_lineno, end)


def merged(kept: Mapping[str, str], measured: Mapping[str, str]) -> dict[str, str]:
    """The digests of a document with parts that were measured earlier and parts measured now."""
    return {
        path: value if kept.get(path, value) == value else MIXED for path, value in measured.items()
    }


def changed(document: Json, now: Mapping[str, str]) -> list[str]:
    """Files that were added, edited or removed after the document was measured, without those whose
    present state is in its `kept`."""
    measured: Mapping[str, str] = document.get("hot_path", {})
    kept: Mapping[str, Json] = document.get("kept", {})
    return sorted(
        path
        for path in {*measured, *now}
        if measured.get(path) != now.get(path)
        and kept.get(path, {}).get("digest") != now.get(path, "")
    )
