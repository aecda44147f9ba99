"""Checkpoints of the audit log: signed heads of the hash chains of a project's stacks.

A checkpoint names, for each stack whose log has grown, the number and hash of its newest entry. Its
digest covers these heads and the digest of the project's checkpoint before it; its signature
covers the digest. A database administrator without the key can rewrite a log and all its hashes,
but cannot create a checkpoint that matches it.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson

#: The digest before the first checkpoint.
FIRST = "0" * 64


class Head(NamedTuple):
    """The newest entry of a stack's audit log. hash: 64 hexadecimal digits."""

    stack_id: UUID
    number: int
    hash: str


class Signer(NamedTuple):
    """key_id: truncated SHA-256 of the public key. sign: returns the signature of bytes."""

    key_id: str
    sign: Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """number: 1, 2, ... within the project. previous: digest of the one before. signature: of the
    digest's text, in hexadecimal digits.
    """

    project: str
    number: int
    at: datetime
    previous: str
    heads: Sequence[Head]
    digest: str = ""
    key_id: str = ""
    signature: str = ""


#: (key ID, message, signature) -> whether the signature is valid; None: unknown key.
Verify = Callable[[str, bytes, bytes], bool | None]


def sign(checkpoint: Checkpoint, signer: Signer) -> Checkpoint:
    """Return the checkpoint with its digest and signature."""
    digest = digest_of(checkpoint)
    signature = signer.sign(digest.encode()).hex()
    return replace(checkpoint, digest=digest, key_id=signer.key_id, signature=signature)


def digest_of(checkpoint: Checkpoint) -> str:
    """Return SHA-256 of the checkpoint as JSON with sorted keys; 64 hexadecimal digits."""
    document = as_document(checkpoint)
    for name in ("digest", "key_id", "signature"):
        del document[name]
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


def as_document(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the checkpoint as in a line of the checkpoint file, and in events."""
    return {
        "project": checkpoint.project,
        "number": checkpoint.number,
        "at": _text(checkpoint.at),
        "previous": checkpoint.previous,
        "heads": [[str(head.stack_id), head.number, head.hash] for head in checkpoint.heads],
        "digest": checkpoint.digest,
        "key_id": checkpoint.key_id,
        "signature": checkpoint.signature,
    }


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_document(document: Any) -> Checkpoint:
    """Decode a checkpoint. Raises ValueError if the document is not one."""
    try:
        heads = [Head(UUID(stack), number, text) for stack, number, text in document["heads"]]
        at = datetime.fromisoformat(document["at"])
        return Checkpoint(**{**document, "heads": heads, "at": at})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError("this is not a checkpoint of an audit log") from error


def first_fault(checkpoints: Iterable[Checkpoint], verify: Verify) -> str | None:
    """Return the first error in checkpoints, in the order of their files, or None.

    Each must have a correct digest and a valid signature, and the one before it must be included.
    """
    known: dict[str, set[str]] = {}
    for one in checkpoints:
        name = f"checkpoint {one.number} of project {one.project}"
        if digest_of(one) != one.digest:
            return f"{name} was changed after it was signed"
        try:
            valid = verify(one.key_id, one.digest.encode(), bytes.fromhex(one.signature))
        except ValueError:
            valid = False
        if not valid:
            why = "has no valid signature" if valid is False else f"is signed by key {one.key_id}"
            return f"{name} {why}" + (", which was not given" if valid is None else "")
        before = known.setdefault(one.project, {FIRST})
        if one.previous not in before:
            return f"a checkpoint before {name} is missing"
        before.add(one.digest)
    return None


def newest_heads(checkpoints: Iterable[Checkpoint]) -> Mapping[UUID, Sequence[Head]]:
    """Return all signed heads by stack, in the order of their numbers."""
    heads: dict[UUID, set[Head]] = {}
    for one in checkpoints:
        for head in one.heads:
            heads.setdefault(head.stack_id, set()).add(head)
    return {stack: sorted(found, key=lambda head: head.number) for stack, found in heads.items()}
