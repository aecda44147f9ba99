"""External validation: plug-ins for custom constraints, and resource types that look up existing
physical resources, validate values before a change is stored.

An update with plug-ins is built twice: before its stack is locked, to call the validators, and
under the lock, with their results.
"""

import asyncio
import inspect
import json
from collections.abc import Mapping, Set
from datetime import timedelta

from engine.errors import Conflict, Findings
from engine.hot.definition.model import StackDefinition
from engine.hot.definition.validators import ValidationRequest, collect_validations
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.installation import read_now
from engine.types.custom_constraints import BUILT_IN, ValidationContext, Verdict
from engine.types.registry import Registry

#: The most validator calls of one request at the same time.
MOST_CONCURRENT = 16
#: Built-in constraints; their validators return at once.
OWN = frozenset(one.name for one in BUILT_IN)

#: Results by question: the error, or None for a valid value.
Results = Mapping[bytes, str | None]


class ExternalValidation:
    def __init__(self, database: Database, registry: Registry, timeout: timedelta) -> None:
        """timeout: for each validator call."""
        self._database = database
        self._registry = registry
        self._timeout_s = timeout.total_seconds()

    @property
    def names(self) -> Set[str]:
        """Names of the validators: custom constraints, and resource types with a lookup."""
        return self._registry.validators().keys()

    @property
    def has_plugins(self) -> bool:
        """Whether a plug-in has validators: their calls may have to be awaited."""
        return not self.names <= OWN

    async def validate(self, definition: StackDefinition, project: str, credential: str) -> Results:
        """Call the validators for all values and await them. Raises Invalid with all errors."""
        asked = self._questions(definition)
        if not asked:
            return {}
        async with self._database.connection() as conn:
            context = ValidationContext(project, await read_now(conn), credential)
        results = await self._run(asked, context)
        _raise_errors(asked, results)
        return results

    async def validate_locked(
        self,
        conn: Connection,
        definition: StackDefinition,
        project: str,
        credential: str,
        answered: Results,
    ) -> None:
        """Validate under the stack's lock, without waiting. answered: the results of `validate`.

        Raises Invalid; Conflict if a value without a result needs a validator that must be awaited.
        """
        asked = self._questions(definition)
        if not asked:
            return
        context = ValidationContext(project, await read_now(conn), credential)
        results = dict(answered)
        for one in asked:
            if _key(one) not in results:
                results[_key(one)] = self._call_without_waiting(one, context)
        _raise_errors(asked, results)

    def _questions(self, definition: StackDefinition) -> list[ValidationRequest]:
        return collect_validations(definition, self._registry.schemas(), self.names)

    def _call(self, one: ValidationRequest, context: ValidationContext) -> Verdict:
        try:
            return self._registry.validators()[one.validator](one.value, context)
        except Exception as error:  # plug-in code
            return _unreachable(one, error)

    def _call_without_waiting(
        self, one: ValidationRequest, context: ValidationContext
    ) -> str | None:
        answer = self._call(one, context)
        if not inspect.isawaitable(answer):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
        raise Conflict(
            f"the stack was changed while {one.validator} validated a value",
            place=one.place,
            remedy="Send the request again.",
        )

    async def _run(
        self, asked: list[ValidationRequest], context: ValidationContext
    ) -> dict[bytes, str | None]:
        results: dict[bytes, str | None] = {}
        timed_out: set[str] = set()
        limit = asyncio.Semaphore(MOST_CONCURRENT)

        async def call(key: bytes, one: ValidationRequest) -> None:
            async with limit:
                results[key] = await self._call_with_timeout(one, context, timed_out)

        async with asyncio.TaskGroup() as tasks:
            for key, one in {_key(one): one for one in asked}.items():
                tasks.create_task(call(key, one))
        return results

    async def _call_with_timeout(
        self, one: ValidationRequest, context: ValidationContext, timed_out: set[str]
    ) -> str | None:
        """timed_out: names of validators that have timed out; they are not called again."""
        if one.validator not in timed_out:
            answer = self._call(one, context)
            if not inspect.isawaitable(answer):
                return answer
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await answer
            except TimeoutError:
                timed_out.add(one.validator)
            except Exception as error:  # plug-in code
                return _unreachable(one, error)
        return f"{one.validator} did not answer within {self._timeout_s:g} s; send it again"


def _unreachable(one: ValidationRequest, error: Exception) -> str:
    """The error for a failed call, without the exception's text, which may contain a secret."""
    return f"{one.validator} could not be reached ({type(error).__name__}); send it again"


def _key(one: ValidationRequest) -> bytes:
    # Not orjson: functions can return integers that are too large for it.
    return json.dumps([one.validator, one.value], sort_keys=True).encode()


def _raise_errors(asked: list[ValidationRequest], results: Results) -> None:
    """Raise Invalid with all errors, in the order of the requests."""
    findings = Findings()
    for one in asked:
        wrong = results[_key(one)]
        if wrong is None:
            continue
        shown = "its hidden value" if one.hidden else f"Error validating value '{one.value}'"
        reason = one.description or f"{shown}: {wrong}"
        if one.parameter:
            reason = f"Parameter '{one.parameter}' is invalid: {reason}"
        findings.add(one.place, reason)
    findings.raise_if_any()
