"""Asking whoever brings a custom constraint, or the type of a thing that is there already, about
values: before anything is stored.

An update is read twice when somebody outside is asked: once before its stack is locked, to ask, and
once behind the lock, with what was answered.
"""

import asyncio
import inspect
from collections.abc import Collection, Mapping
from datetime import timedelta

import orjson

from engine.errors import Conflict, Findings
from engine.hot.defined import Definition
from engine.hot.questions import Question, questions
from engine.store.database import Connection, Database
from engine.store.instance import read_now
from engine.types.constraints import Asker, Judge
from engine.types.registry import Registry

#: Questions that are under way at once.
TOGETHER = 16

#: What somebody outside said of values, by question: what is wrong, or None.
Answered = Mapping[bytes, str | None]


class Asking:
    def __init__(self, database: Database, registry: Registry, patience: timedelta) -> None:
        """patience: for each answer."""
        self._database = database
        self._registry = registry
        self._patience = patience.total_seconds()

    @property
    def names(self) -> Collection[str]:
        """Of what somebody answers for: custom constraints, types that look for their things."""
        return self._registry.judges().keys()

    @property
    def outside(self) -> bool:
        """Whether anybody is asked who may have to be waited for."""
        return any(map(inspect.iscoroutinefunction, self._registry.judges().values()))

    async def ask(self, definition: Definition, project: str, credential: str) -> Answered:
        """Ask, and wait for whoever is to be waited for. Raises Invalid with all that is wrong."""
        asked = self._questions(definition)
        if not asked:
            return {}
        async with self._database.connection() as conn:
            asker = Asker(project, await read_now(conn), credential)
        answered = await self._wait(asked, asker)
        _refuse(asked, answered | self._at_once(asked, asker))
        return answered

    async def ask_again(
        self, conn: Connection, definition: Definition, project: str, answered: Answered
    ) -> None:
        """The same for a definition behind a lock: nobody is waited for any more.

        Raises Invalid; Conflict when a value has come that nobody was asked about.
        """
        asked = self._questions(definition)
        if not asked:
            return
        asker = Asker(project, await read_now(conn))
        known = {**answered, **self._at_once(asked, asker)}
        for one in asked:
            if _key(one) not in known:
                raise Conflict(
                    f"the stack was changed while {one.judge} was asked about a value",
                    place=one.place,
                    remedy="Send the request again.",
                )
        _refuse(asked, known)

    def _questions(self, definition: Definition) -> list[Question]:
        return questions(definition, self._registry.schemas(), self._registry.judges().keys())

    def _at_once(self, asked: list[Question], asker: Asker) -> dict[bytes, str | None]:
        judges = self._registry.judges()
        said: dict[bytes, str | None] = {}
        for one in asked:
            judge = judges[one.judge]
            if not inspect.iscoroutinefunction(judge):
                answer = judge(one.value, asker)
                said[_key(one)] = answer if isinstance(answer, str) else None
        return said

    async def _wait(self, asked: list[Question], asker: Asker) -> dict[bytes, str | None]:
        judges = self._registry.judges()
        said: dict[bytes, str | None] = {}
        limit = asyncio.Semaphore(TOGETHER)

        async def wait(key: bytes, one: Question) -> None:
            async with limit:
                said[key] = await self._patiently(judges[one.judge], one, asker)

        async with asyncio.TaskGroup() as tasks:
            for key, one in {_key(one): one for one in asked}.items():
                if inspect.iscoroutinefunction(judges[one.judge]):
                    tasks.create_task(wait(key, one))
        return said

    async def _patiently(self, judge: Judge, one: Question, asker: Asker) -> str | None:
        answer = judge(one.value, asker)
        if not inspect.isawaitable(answer):
            return answer
        try:
            async with asyncio.timeout(self._patience):
                return await answer
        except TimeoutError:
            return f"{one.judge} did not answer within {self._patience:g} s; send it again"
        except Exception as error:  # a plug-in's; its text may hold a secret
            return f"{one.judge} could not be asked ({type(error).__name__}); send it again"


def _key(one: Question) -> bytes:
    return orjson.dumps([one.judge, one.value], option=orjson.OPT_SORT_KEYS)


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
