"""The front door: accept a change, answer a hook, read what there is."""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from uuid import UUID

import orjson

from engine.errors import Conflict, Finding, Findings, Invalid, LimitReached, NotFound
from engine.hooks.answers import Accepted, Same, judge
from engine.hooks.rules import Breakpoints, Rule, check_patterns, encode_rules
from engine.node.inputs import Answered
from engine.plan.passes import Existing, plan
from engine.service.blueprint import Blueprint, Limits, build, node_inputs, stored_outputs
from engine.service.reading import Reading
from engine.service.requests import Answer, StackRequest
from engine.store import accept
from engine.store.database import Connection, Database
from engine.store.hooks import lock_hooks, stack_of_hook, waiting_hook_at
from engine.store.read import find_stack, read_existing, read_hook, read_template
from engine.store.records import HookRecord, StackRecord, TemplateRecord
from engine.types.registry import Registry
from engine.words import Action, Decision, Door, Json, Point, ResourceId, TraversalState
from engine.work.answering import Verdict, apply

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")


class Engine(Reading):
    """create_stack, update_stack, delete_stack, answer, unset_hook; and the reads of `Reading`.

    Everything raises the errors of engine/errors.py: Invalid, NotFound, Conflict, AnswerRefused,
    LimitReached, Unavailable.
    """

    def __init__(
        self,
        database: Database,
        registry: Registry,
        limits: Limits,
        *,
        new_id: Callable[[], UUID],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """wake: tells a worker of this process, quicker than the database does."""
        super().__init__(database, registry)
        self._limits = limits
        self._new_id = new_id
        self._wake = wake

    @property
    def default_timeout(self) -> timedelta:
        return self._limits.hooks.default_timeout

    async def create_stack(self, project: str, request: StackRequest) -> StackRecord:
        """Validate whole, plan, store; return once durable. Conflict StackExists."""
        _check_name(request.name)
        stack_id = self._new_id()
        blueprint = self._build(request, None, project, stack_id, request.name)
        async with self._database.transaction() as conn:
            known = await self._seen_before(conn, project, request, stack_id)
            if known is None:
                await self._insert_stack(conn, project, stack_id, request)
                await self._begin(
                    conn, stack_id, Action.CREATE, blueprint, 1, 1, [], request.requested_by,
                    request.hooks_clear,
                )  # fmt: skip
            record = await find_stack(conn, project, known or stack_id, "")
        self._wake()
        if record is None:
            raise NotFound("the stack that this request made is gone", code="EntityNotFound")
        return record

    async def _seen_before(
        self, conn: Connection, project: str, request: StackRequest, stack_id: UUID
    ) -> UUID | None:
        """The stack an earlier request with the same Idempotency-Key made."""
        if not request.idempotency_key:
            return None
        said = orjson.dumps(
            [request.name, request.template, request.environment, request.files,
             request.parameters, request.tags, request.timeout_mins],
            option=orjson.OPT_SORT_KEYS,
        )  # fmt: skip
        digest = hashlib.sha256(said).hexdigest()
        held = await accept.claim_key(conn, project, request.idempotency_key, digest, stack_id)
        if held.digest != digest:
            raise Conflict(
                "this Idempotency-Key was used for another request",
                place="Idempotency-Key",
                remedy="Use a new key for each new request.",
                code="IdempotencyKeyReused",
            )
        return None if held.stack_id == stack_id else held.stack_id

    async def _insert_stack(
        self, conn: Connection, project: str, stack_id: UUID, request: StackRequest
    ) -> None:
        if await accept.count_stacks(conn, project) >= self._limits.stacks:
            raise LimitReached(
                f"the project has {self._limits.stacks} stacks already",
                remedy="Delete one; the operator sets the most in [quotas] stacks_per_project.",
                code="RequestLimitExceeded",
            )
        made = await accept.insert_stack(
            conn,
            stack_id=stack_id,
            project=project,
            name=request.name,
            owner=request.requested_by,
            tags=request.tags or (),
            timeout_mins=request.timeout_mins,
            disable_rollback=request.disable_rollback is not False,
        )
        if not made:
            raise Conflict(
                f"The Stack ({request.name}) already exists.",
                remedy="Choose another name, or update that stack.",
                code="StackExists",
            )

    async def update_stack(self, project: str, stack_id: UUID, request: StackRequest) -> None:
        """Supersede whatever runs by a traversal toward what is asked."""
        async with self._database.transaction() as conn:
            locked = await self._lock(conn, project, stack_id)
            record = await find_stack(conn, project, stack_id, "")
            before = await read_template(conn, stack_id, locked.version)
            stored = before if request.existing else None
            name = record.name if record else request.name
            blueprint = self._build(request, stored, project, stack_id, name)
            _check_immutable(blueprint, before.parameters, before.environment)
            version, number = locked.version + 1, locked.traversal + 1
            await self._supersede(conn, stack_id, locked, request.requested_by)
            existing = await read_existing(conn, stack_id)
            await accept.point_stack(
                conn,
                stack_id=stack_id,
                version=version,
                traversal=number,
                tags=request.tags,
                timeout_mins=request.timeout_mins,
                disable_rollback=request.disable_rollback,
            )
            await self._begin(
                conn, stack_id, Action.UPDATE, blueprint, number, version, existing,
                request.requested_by, request.hooks_clear,
            )  # fmt: skip
        self._wake()

    async def delete_stack(self, project: str, stack_id: UUID, requested_by: str) -> None:
        """Supersede whatever runs by a traversal that clears everything away."""
        async with self._database.transaction() as conn:
            locked = await self._lock(conn, project, stack_id)
            if locked.action == Action.DELETE and locked.state == TraversalState.RUNNING:
                return
            number = locked.traversal + 1
            await self._supersede(conn, stack_id, locked, requested_by)
            existing = await read_existing(conn, stack_id)
            nothing = Breakpoints()
            planned = plan({}, existing, nothing.of, self._new_resource_id)
            await accept.point_stack(
                conn, stack_id=stack_id, version=locked.version, traversal=number
            )
            await _record_start(conn, stack_id, Action.DELETE, number, locked.version, [])
            await accept.insert_traversal(
                conn,
                stack_id=stack_id,
                number=number,
                action=Action.DELETE,
                version=locked.version,
                plan=planned,
                inputs={},
                requested_by=requested_by,
            )
        self._wake()

    async def _lock(self, conn: Connection, project: str, stack_id: UUID) -> accept.Locked:
        locked = await accept.lock_stack(conn, project, stack_id)
        if locked is None or locked.deleted:
            raise NotFound(f"The Stack ({stack_id}) could not be found.", code="EntityNotFound")
        return locked

    async def _supersede(
        self, conn: Connection, stack_id: UUID, locked: accept.Locked, by: str
    ) -> None:
        if locked.state in (TraversalState.RUNNING, TraversalState.ENDING):
            await accept.supersede(conn, stack_id, locked.traversal, by)

    def _build(
        self,
        request: StackRequest,
        stored: TemplateRecord | None,
        project: str,
        stack_id: UUID,
        name: str,
    ) -> Blueprint:
        return build(
            request,
            stored,
            project=project,
            stack_id=stack_id,
            stack_name=name,
            registry=self._registry,
            limits=self._limits,
        )

    async def _begin(
        self,
        conn: Connection,
        stack_id: UUID,
        action: Action,
        blueprint: Blueprint,
        number: int,
        version: int,
        existing: Sequence[Existing],
        requested_by: str,
        cleared: Sequence[str],
    ) -> None:
        """Store the version, the traversal and its graph, and the event that it began."""
        definition = blueprint.definition
        names = sorted({*definition.resources, *(row.name for row in existing)})
        findings = Findings()
        said = (*blueprint.asked, *blueprint.by_environment, *blueprint.by_template)
        warnings = check_patterns(said, names, findings)
        findings.raise_if_any()
        kept = Breakpoints(blueprint.by_environment, blueprint.by_template)
        asking = Breakpoints(
            blueprint.asked, blueprint.by_environment, blueprint.by_template, cleared=cleared
        )
        planned = plan(definition.resources, existing, asking.of, self._new_resource_id)
        await accept.insert_template(
            conn,
            stack_id=stack_id,
            version=version,
            description=definition.description,
            template=blueprint.template.document,
            environment=blueprint.environment.document,
            files=blueprint.files,
            parameters=blueprint.parameters,
            shown=definition.shown_parameters(),
            hidden=definition.hidden,
            outputs=stored_outputs(definition),
            requested_by=requested_by,
        )
        await _record_start(conn, stack_id, action, number, version, warnings)
        await accept.insert_traversal(
            conn,
            stack_id=stack_id,
            number=number,
            action=action,
            version=version,
            plan=planned,
            inputs=node_inputs(definition, self._registry),
            requested_by=requested_by,
        )
        if said or any(row.rules for row in existing):
            current = {row.name: row.id for row in existing if row.replaced_by is None}
            rows = {row.name: row.id for row in planned.rows}
            ids = {name: rows.get(name) or current[name] for name in definition.resources}
            await accept.store_rules(conn, stack_id, _kept_rules(kept.of, ids.items()))

    def _new_resource_id(self) -> ResourceId:
        return ResourceId(self._new_id())

    async def answer(self, hook_id: UUID, answer: Answer, *, project: str | None) -> HookRecord:
        """Decide a hook. project: None when the hook's token was shown. AnswerRefused, NotFound."""
        async with self._database.transaction() as conn:
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


def _kept_rules(
    rules_of: Callable[[str], tuple[Rule, ...]], ids: Iterable[tuple[str, UUID]]
) -> dict[UUID, Json]:
    return {resource_id: encode_rules(rules_of(name)) for name, resource_id in ids}


async def _record_start(
    conn: Connection,
    stack_id: UUID,
    action: Action,
    number: int,
    version: int,
    warnings: Sequence[str],
) -> None:
    data: dict[str, Json] = {"traversal": number, "version": version}
    if warnings:
        data["warnings"] = list(warnings)
    await accept.record_stack_event(
        conn,
        stack_id=stack_id,
        kind=f"headgate.stack.{action.lower()}.started",
        action=action,
        status="IN_PROGRESS",
        reason=f"Stack {action} started",
        data=data,
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        reason = (
            f'Invalid stack name {name} must contain only alphanumeric or "_-." characters, '
            "must start with alpha and must be 255 characters or less."
        )
        raise Invalid([Finding("stack_name", reason)])


def _check_immutable(blueprint: Blueprint, before: Json, environment: Json) -> None:
    was = {**(environment.get("parameters") or {}), **before}
    now = {**blueprint.environment.parameters, **blueprint.parameters}
    changed = sorted(
        name
        for name, schema in blueprint.definition.schemas.items()
        if schema.immutable and was.get(name, schema.default) != now.get(name, schema.default)
    )
    if changed:
        names = ", ".join(changed)
        reason = f"The following parameters are immutable and may not be updated: {names}"
        raise Invalid([Finding("", reason, code="ImmutableParameterModified")])


def _no_hook(hook_id: UUID) -> NotFound:
    return NotFound(f"there is no hook {hook_id}", code="HookNotFound")


def _not_waiting(reason: str, known: Sequence[str]) -> Invalid:
    remedy = f"Acceptable hook types are: {', '.join(known)}." if known else ""
    return Invalid([Finding("", reason, remedy, "InvalidBreakPointHook")])
