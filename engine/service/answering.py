"""Answers to hooks, through whichever door they come."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from uuid import UUID

from engine.errors import Finding, Invalid, NotFound
from engine.hooks.answers import Accepted, Same, judge
from engine.node.inputs import Answered
from engine.service.reading import Reading
from engine.service.requests import Answer
from engine.store.database import Database
from engine.store.hooks import lock_hooks, stack_of_hook, waiting_hook_at
from engine.store.read import read_hook
from engine.store.records import HookRecord
from engine.types.registry import Registry
from engine.words import Decision, Door, Point
from engine.work.answering import Verdict, apply


class Answering(Reading):
    def __init__(
        self,
        database: Database,
        registry: Registry,
        default_timeout: timedelta,
        *,
        new_id: Callable[[], UUID],
        wake: Callable[[], None],
    ) -> None:
        super().__init__(database, registry)
        self.default_timeout = default_timeout
        self._new_id = new_id
        self._wake = wake

    async def answer(self, hook_id: UUID, answer: Answer, *, project: str | None) -> HookRecord:
        """Decide a hook. project: None when the hook's token was shown. AnswerRefused, NotFound."""
        async with self._database.transaction("answer") as conn:
            stack_id = await stack_of_hook(conn, hook_id, project)
            if stack_id is None:
                raise _no_hook(hook_id)
            held = (await lock_hooks(conn, [(stack_id, hook_id)]))[0]
            judged = judge(held.asked, answer.decision, answer.digest, held.now)
            match judged:
                case Accepted(decision=decision):
                    said = Answered(decision, answer.by, answer.reason)
                    verdict = Verdict(
                        held, said, answer.by, answer.door, answer.reason, answer.data
                    )
                    await apply(
                        conn, [verdict], new_id=self._new_id, default_timeout=self.default_timeout
                    )
                case Same():
                    pass
                case _:
                    raise judged
            record = await read_hook(conn, hook_id, project)
        self._wake()
        if record is None:
            raise _no_hook(hook_id)
        return record

    async def unset_hook(
        self, project: str, stack_id: UUID, resource_name: str, point: str, by: str
    ) -> None:
        """Heat's way to answer: Invalid with code InvalidBreakPointHook when none waits."""
        known = [one.value for one in Point]
        if point not in known:
            raise _not_waiting(f'Invalid hook type "{point}" for resource "{resource_name}"', known)
        async with self._database.connection() as conn:
            hook_id = await waiting_hook_at(conn, stack_id, resource_name, point)
        if hook_id is None:
            raise _not_waiting(f'The "{point}" hook is not defined on "{resource_name}"', ())
        answer = Answer(Decision.CONTINUE, by, Door.UNSET_HOOK)
        await self.answer(hook_id, answer, project=project)


def _no_hook(hook_id: UUID) -> NotFound:
    return NotFound(f"there is no hook {hook_id}", code="HookNotFound")


def _not_waiting(reason: str, known: Sequence[str]) -> Invalid:
    remedy = f"Acceptable hook types are: {', '.join(known)}." if known else ""
    return Invalid([Finding("", reason, remedy, "InvalidBreakPointHook")])
