"""The rounds of a converge: each is an update of its own, with the rights of the requester of the
first."""

from collections.abc import Awaitable, Sequence
from typing import Protocol
from uuid import UUID

from engine.errors import HeadgateError, NotFound, Unavailable
from engine.service.repairs import RepairNotNeeded
from engine.service.requests.requests import StackRequest
from engine.store.access.trusts import trust_id
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Keyring
from engine.store.observer import converge_requests
from engine.store.observer.converge_requests import PendingConverge
from engine.store.stacks.stack_locks import LockedStack
from engine.words import ConvergeState


class RoundUpdate(Protocol):
    """`Stacks.update`."""

    def __call__(
        self, project: str, stack_id: UUID, request: StackRequest, *, continued: PendingConverge
    ) -> Awaitable[None]: ...


async def begin_round(
    conn: Connection,
    locked: LockedStack,
    traversal: int,
    request: StackRequest,
    selected: Sequence[str] | None,
    keyring: Keyring | None,
) -> None:
    """Record the round that the next traversal of a locked stack is, if its converge has several.
    selected: names of the resources that it repairs; None: all."""
    if request.round is None:
        return
    encrypted = trust = None
    if request.credential and keyring is not None:
        scope = converge_requests.scope(locked.project, locked.id)
        encrypted = keyring.encrypt(scope, request.credential)
        trust = trust_id(request.credential)
    repeated = {
        "only": list(request.only),
        "except": list(request.except_),
        "hooks_clear": list(request.hooks_clear),
        "hooks_add": list(request.hooks_add),
    }
    await converge_requests.begin(
        conn, locked.id, traversal, request.round, selected=selected, request=repeated,
        requested_by=request.requested_by, encrypted=encrypted, trust=trust,
    )  # fmt: skip


async def check_continued(conn: Connection, continued: PendingConverge) -> None:
    """Under the lock of the stack. Raises RepairNotNeeded if the next round has begun already, or
    another change has."""
    pending = await converge_requests.lock_pending(conn, continued.stack_id)
    if (
        pending is None
        or not pending.current
        or pending.state is not ConvergeState.OBSERVING
        or pending.number != continued.number
    ):
        raise RepairNotNeeded


class ConvergeStart:
    """Starts the next round of a converge. keyring: decrypts the credential of the request."""

    def __init__(self, update: RoundUpdate, keyring: Keyring | None) -> None:
        self._update = update
        self._keyring = keyring

    async def __call__(self, pending: PendingConverge) -> str:
        """Start the next round, unless that is not needed any more. Returns why it is refused, or
        "". Raises Unavailable."""
        try:
            request = self._request(pending)
            await self._update(pending.project, pending.stack_id, request, continued=pending)
        except (RepairNotNeeded, NotFound):
            return ""
        except Unavailable:
            raise
        except HeadgateError as error:
            return str(error)
        return ""

    def _request(self, pending: PendingConverge) -> StackRequest:
        credential = ""
        if pending.encrypted is not None and self._keyring is not None:
            scope = converge_requests.scope(pending.project, pending.stack_id)
            credential = self._keyring.decrypt(scope, pending.encrypted)
        repeated = pending.request
        return StackRequest(
            existing=True,
            converge=True,
            round=pending.number.next,
            only=repeated["only"],
            except_=repeated["except"],
            hooks_clear=repeated["hooks_clear"],
            hooks_add=repeated["hooks_add"],
            requested_by=pending.requested_by,
            credential=credential,
        )
