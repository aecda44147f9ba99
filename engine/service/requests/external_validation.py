"""External validation: plug-ins for custom constraints, and resource types that look up existing
physical resources, validate values before a change is stored.

An update is built and validated before its stack is locked. If the stack has changed when it is
locked, the update is built again under the lock, and validated with the results that are known.
"""

import asyncio
import inspect
import json
import traceback
from collections.abc import Mapping, Set
from datetime import timedelta

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Conflict, Finding, Findings, Invalid
from engine.hot.definition.model import StackDefinition
from engine.hot.definition.validators import ValidationRequest, collect_validations
from engine.hot.environment.context_section import REGION_PLACE
from engine.hot.expressions.masking import iterate_texts
from engine.hot.schema.custom_constraints import REMEDIES
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.maintenance.monitoring import read_now
from engine.types.custom_constraints import ValidationContext, Verdict
from engine.types.regions import REGION_CONSTRAINT
from engine.types.registry import TypeRegistry

log: FilteringBoundLogger = structlog.get_logger()

#: Maximum number of concurrent validator calls of one request.
MAX_CONCURRENT = 16

#: Results by request: the error, or None for a valid value.
Results = Mapping[bytes, str | None]


class ExternalValidation:
    def __init__(self, database: Database, registry: TypeRegistry, timeout: timedelta) -> None:
        """timeout: for each validator call."""
        self._database = database
        self._registry = registry
        self._timeout_s = timeout.total_seconds()

    @property
    def names(self) -> Set[str]:
        """Names of the validators: custom constraints, and resource types with a lookup."""
        return self._registry.validators().keys()

    async def validate(
        self,
        definition: StackDefinition,
        project: str,
        credential: str,
        region: str,
        *,
        is_nested: bool = False,
    ) -> Results:
        """Call the validators for all values and await them. region: of the stack, which is
        validated first. is_nested: it was validated with the root stack. Raises Invalid with all
        errors."""
        own = "" if is_nested else region
        requests = self._requests(definition, own)
        if not requests:
            return {}
        async with self._database.connection() as conn:
            context = ValidationContext(project, await read_now(conn), credential, region)
        first, others = requests[: bool(own)], requests[bool(own) :]
        results = await self._run(first, context)
        _raise_errors(first, results)
        results |= await self._run(others, context)
        _raise_errors(others, results)
        return results

    async def validate_region(self, project: str, credential: str, region: str) -> None:
        """Validate the region of a request without a definition. Raises Invalid."""
        requests = self._region_requests(region)
        if requests:
            async with self._database.connection() as conn:
                now = await read_now(conn)
            context = ValidationContext(project, now, credential, region)
            _raise_errors(requests, await self._run(requests, context))

    async def validate_locked(
        self,
        conn: Connection,
        definition: StackDefinition,
        project: str,
        credential: str,
        known: Results,
        region: str,
    ) -> None:
        """Validate under the stack's lock, without waiting. known: the results of `validate`.

        Raises Invalid; Conflict if a value without a result needs a validator that must be awaited.
        """
        requests = self._requests(definition, region)
        if not requests:
            return
        context = ValidationContext(project, await read_now(conn), credential, region)
        results = dict(known)
        for one in requests:
            if _key(one) not in results:
                results[_key(one)] = self._call_without_waiting(one, context)
        _raise_errors(requests, results)

    def _requests(self, definition: StackDefinition, region: str) -> list[ValidationRequest]:
        """That of the region is the first one. Raises Invalid if stacks have no region here."""
        found = collect_validations(definition, self._registry.schemas(), self.names)
        return [*self._region_requests(region), *found]

    def _region_requests(self, region: str) -> list[ValidationRequest]:
        """ "": no request. Raises Invalid if stacks have no region here."""
        if not region:
            return []
        if REGION_CONSTRAINT not in self.names:
            reason = "This server has no resource types of OpenStack, so a stack has no region."
            remedy = "Leave out the section context. The operator can set"
            setting = "[resource_types.openstack] enabled = true, in the mode keystone."
            raise Invalid([Finding(REGION_PLACE, reason, f"{remedy} {setting}")])
        return [ValidationRequest(REGION_CONSTRAINT, region, REGION_PLACE)]

    def _call(self, request: ValidationRequest, context: ValidationContext) -> Verdict:
        try:
            return self._registry.validators()[request.validator](request.value, context)
        except Exception as error:  # plug-in code
            return _report_failure(request, error)

    def _call_without_waiting(
        self, request: ValidationRequest, context: ValidationContext
    ) -> str | None:
        answer = self._call(request, context)
        if not inspect.isawaitable(answer):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
        raise Conflict(
            f"the stack was changed while {request.validator} validated a value",
            place=request.place,
            remedy="Send the request again.",
        )

    async def _run(
        self, requests: list[ValidationRequest], context: ValidationContext
    ) -> dict[bytes, str | None]:
        results: dict[bytes, str | None] = {}
        timed_out: set[str] = set()
        limit = asyncio.Semaphore(MAX_CONCURRENT)

        async def call(key: bytes, request: ValidationRequest) -> None:
            async with limit:
                results[key] = await self._call_with_timeout(request, context, timed_out)

        async with asyncio.TaskGroup() as tasks:
            for key, one in {_key(one): one for one in requests}.items():
                tasks.create_task(call(key, one))
        return results

    async def _call_with_timeout(
        self, request: ValidationRequest, context: ValidationContext, timed_out: set[str]
    ) -> str | None:
        """timed_out: names of validators that have timed out; they are not called again."""
        if request.validator not in timed_out:
            answer = self._call(request, context)
            if not inspect.isawaitable(answer):
                return answer
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await answer
            except TimeoutError:
                timed_out.add(request.validator)
            except Exception as error:  # plug-in code
                return _report_failure(request, error)
        why = f"{request.validator} did not answer within {self._timeout_s:g} s"
        return f"{why}; send the request again"


def _report_failure(request: ValidationRequest, error: Exception) -> str:
    """The reason of a failed call. The exception's text may contain a secret: it is not logged."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error(
        "validator.failed", validator=request.validator, error=type(error).__name__, where=where
    )
    return (
        f"{request.validator} failed to validate it (see the server's log); send the request again"
    )


def _key(request: ValidationRequest) -> bytes:
    # Not orjson: functions can return integers that are too large for it.
    return json.dumps([request.validator, request.value], sort_keys=True).encode()


#: A validator's reason is hidden if it contains this many consecutive characters of a secret value.
SECRET_PIECE = 4


def refusal(request: ValidationRequest, wrong: str) -> str:
    """The error with the value, unless it is hidden. A plug-in's reason may repeat it."""
    if not request.hidden:
        return f"Error validating value '{request.value}': {wrong}"
    reason = wrong.lower()
    pieces = (
        text[start : start + SECRET_PIECE]
        for text in map(str.lower, iterate_texts(request.value))
        for start in range(max(len(text) - SECRET_PIECE, 0) + 1)
    )
    repeats = any(piece in reason for piece in pieces)
    return f"its hidden value: {f'it is not a valid {request.validator}' if repeats else wrong}"


def _raise_errors(requests: list[ValidationRequest], results: Results) -> None:
    """Raise Invalid with all errors, in the order of the requests."""
    findings = Findings()
    for one in requests:
        wrong = results[_key(one)]
        if wrong is None:
            continue
        reason = one.description or refusal(one, wrong)
        if one.parameter:
            reason = f"Parameter '{one.parameter}' is invalid: {reason}"
        remedy = REMEDIES.get(one.validator) or f"Use a value that {one.validator} accepts."
        declared = f"parameters.{one.parameter}" if one.parameter and not one.place else None
        findings.add(one.place, reason, remedy, at=declared)
    findings.raise_if_any()
