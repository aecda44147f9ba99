"""Asking whoever brings a custom constraint, or the type of a thing that is there already, about
values: before anything is stored.

An update is read twice when somebody outside is asked: once before its stack is locked, to ask, and
once behind the lock, with what was answered.
"""

import asyncio
import inspect
import json
from collections.abc import Mapping, Set
from datetime import timedelta

from engine.errors import Conflict, Findings
from engine.hot.defined import Definition
from engine.hot.questions import Question, questions
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.instance import read_now
from engine.types.constraints import BUILT_IN, Asker, Verdict
from engine.types.registry import Registry

#: Questions that are under way at once.
TOGETHER = 16
#: Constraints of our own, which are never waited for.
OWN = frozenset(one.name for one in BUILT_IN)

#: What somebody outside said of values, by question: what is wrong, or None.
Answered = Mapping[bytes, str | None]


class Asking:
    def __init__(self, database: Database, registry: Registry, patience: timedelta) -> None:
        """patience: for each answer."""
        self._database = database
        self._registry = registry
        self._patience = patience.total_seconds()

    @property
    def names(self) -> Set[str]:
        """Of what somebody answers for: custom constraints, types that look for their things."""
        return self._registry.judges().keys()

    @property
    def outside(self) -> bool:
        """Whether anybody is asked who may have to be waited for: all who came with a plug-in."""
        return not self.names <= OWN

    async def ask(self, definition: Definition, project: str, credential: str) -> Answered:
        """Ask, and wait for whoever is to be waited for. Raises Invalid with all that is wrong."""
        asked = self._questions(definition)
        if not asked:
            return {}
        async with self._database.connection() as conn:
            asker = Asker(project, await read_now(conn), credential)
        said = await self._wait(asked, asker)
        _refuse(asked, said)
        return said

    async def ask_again(
        self,
        conn: Connection,
        definition: Definition,
        project: str,
        credential: str,
        answered: Answered,
    ) -> None:
        """The same for a definition behind a lock: nobody is waited for any more.

        Raises Invalid; Conflict when a value has come that somebody has to be waited for.
        """
        asked = self._questions(definition)
        if not asked:
            return
        asker = Asker(project, await read_now(conn), credential)
        said = dict(answered)
        for one in asked:
            if _key(one) not in said:
                said[_key(one)] = self._at_once(one, asker)
        _refuse(asked, said)

    def _questions(self, definition: Definition) -> list[Question]:
        return questions(definition, self._registry.schemas(), self.names)

    def _verdict(self, one: Question, asker: Asker) -> Verdict:
        try:
            return self._registry.judges()[one.judge](one.value, asker)
        except Exception as error:  # a plug-in's
            return _not_asked(one, error)

    def _at_once(self, one: Question, asker: Asker) -> str | None:
        answer = self._verdict(one, asker)
        if not inspect.isawaitable(answer):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
        raise Conflict(
            f"the stack was changed while {one.judge} was asked about a value",
            place=one.place,
            remedy="Send the request again.",
        )

    async def _wait(self, asked: list[Question], asker: Asker) -> dict[bytes, str | None]:
        said: dict[bytes, str | None] = {}
        silent: set[str] = set()
        limit = asyncio.Semaphore(TOGETHER)

        async def wait(key: bytes, one: Question) -> None:
            async with limit:
                said[key] = await self._patiently(one, asker, silent)

        async with asyncio.TaskGroup() as tasks:
            for key, one in {_key(one): one for one in asked}.items():
                tasks.create_task(wait(key, one))
        return said

    async def _patiently(self, one: Question, asker: Asker, silent: set[str]) -> str | None:
        """silent: who has kept us waiting for nothing once is not asked any more."""
        if one.judge not in silent:
            answer = self._verdict(one, asker)
            if not inspect.isawaitable(answer):
                return answer
            try:
                async with asyncio.timeout(self._patience):
                    return await answer
            except TimeoutError:
                silent.add(one.judge)
            except Exception as error:  # a plug-in's
                return _not_asked(one, error)
        return f"{one.judge} did not answer within {self._patience:g} s; send it again"


def _not_asked(one: Question, error: Exception) -> str:
    """Without the error's text, which may hold a secret."""
    return f"{one.judge} could not be asked ({type(error).__name__}); send it again"


def _key(one: Question) -> bytes:
    # Not orjson: a function may make numbers that are too large for it.
    return json.dumps([one.judge, one.value], sort_keys=True).encode()


def _refuse(asked: list[Question], said: Answered) -> None:
    """Raise Invalid when anything is wrong, in the order of the questions."""
    findings = Findings()
    for one in asked:
        wrong = said[_key(one)]
        if wrong is None:
            continue
        shown = "its hidden value" if one.hidden else f"Error validating value '{one.value}'"
        reason = one.description or f"{shown}: {wrong}"
        if one.parameter:
            reason = f"Parameter '{one.parameter}' is invalid: {reason}"
        findings.add(one.place, reason)
    findings.raise_if_any()
