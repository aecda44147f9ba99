"""Builds the blueprints of requests: parsed and validated, with the outputs of other stacks."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from uuid import UUID

from engine.errors import MissingTemplates
from engine.hot.definition.reuse import NONE_REUSABLE
from engine.hot.evaluation.stack_outputs import OutputName, StackOutput, StackOutputs
from engine.hot.nested.template_stack import is_template_address
from engine.service.reads.stack_outputs import read_stack_outputs, with_stack_outputs
from engine.service.requests.blueprint import Blueprint, Limits, NestedPlace, build
from engine.service.requests.definition_cache import CacheKey, DefinitionCache
from engine.service.requests.requests import StackRequest
from engine.service.traversals.thread_pool import ThreadPool
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.records import StackRecord, TemplateRecord
from engine.store.stacks import stack_locks
from engine.store.stacks.templates import find_template
from engine.types.registry import TypeRegistry

NO_OUTPUTS: Mapping[OutputName, StackOutput] = {}


class Blueprints:
    """database: for outputs of other stacks that are read without a transaction."""

    def __init__(
        self, registry: TypeRegistry, limits: Limits, database: Database, thread_pool: ThreadPool
    ) -> None:
        self._registry = registry
        self._limits = limits
        self._database = database
        self._thread_pool = thread_pool
        self._definitions = DefinitionCache()

    async def build(
        self,
        request: StackRequest,
        stored: TemplateRecord | None,
        *,
        project: str,
        stack_id: UUID | None,
        name: str,
        nested: NestedPlace | None = None,
        conn: "Connection | None" = None,
        known: Mapping[OutputName, StackOutput] = NO_OUTPUTS,
    ) -> Blueprint:
        """Parse and validate a request in a thread; see `engine.service.requests.blueprint.build`.

        stack_id: None if the stack does not exist yet. conn: of the caller's transaction, if it has
        one. known: outputs of other stacks that are not read again. Raises Invalid, LimitReached,
        Unavailable.
        """

        async def define(outputs: StackOutputs) -> Blueprint:
            return await self._build(
                request,
                stored,
                project=project,
                stack_id=stack_id,
                name=name,
                nested=nested,
                stack_outputs=outputs,
            )

        read = partial(self.read_stack_outputs, project=project, stack_id=stack_id, conn=conn)
        return await with_stack_outputs(define, read, known)

    async def read_stack_outputs(
        self,
        wanted: Collection[OutputName],
        *,
        project: str,
        stack_id: UUID | None,
        conn: "Connection | None" = None,
    ) -> Mapping[OutputName, StackOutput]:
        """Read outputs of other stacks. stack_id: of the stack that reads them. conn: see
        `build`."""
        if conn is not None:
            return await read_stack_outputs(conn, project, wanted, stack_id)
        async with self._database.connection() as own:
            return await read_stack_outputs(own, project, wanted, stack_id)

    async def _build(
        self,
        request: StackRequest,
        stored: TemplateRecord | None,
        *,
        project: str,
        stack_id: UUID | None,
        name: str,
        nested: NestedPlace | None,
        stack_outputs: StackOutputs,
    ) -> Blueprint:
        task = partial(
            build,
            request,
            stored,
            project=project,
            stack_id=stack_id,
            stack_name=name,
            registry=self._registry,
            limits=self._limits.for_project(project),
            nested=nested,
            stack_outputs=stack_outputs,
        )
        if stack_id is None or nested is not None:
            return await self._thread_pool(task, project)
        key = CacheKey(stack_id, request.timeout_mins)
        cached = partial(task, previous=self._definitions.get(key))
        blueprint = await self._thread_pool(cached, project)
        self._definitions.put(key, blueprint.definition.reusable or NONE_REUSABLE)
        return blueprint

    async def build_for(
        self,
        stack: stack_locks.LockedStack | StackRecord,
        request: StackRequest,
        stored: TemplateRecord | None,
        nested: NestedPlace | None = None,
        conn: "Connection | None" = None,
        known: Mapping[OutputName, StackOutput] = NO_OUTPUTS,
        *,
        keeps_region: bool = True,
    ) -> Blueprint:
        """As `build`, for a stack that exists. keeps_region: its region stays if the environment of
        the request names none; False: it is that of the stored environment."""
        if keeps_region:
            request = replace(request, current_region=stack.region)
        build = partial(
            self.build,
            stored=stored,
            project=stack.project,
            stack_id=stack.id,
            name=stack.name,
            nested=nested,
            conn=conn,
            known=known,
        )
        kept: dict[str, str] = {}
        stored_files: Mapping[str, str] | None = None
        while True:
            try:
                return await build(
                    replace(request, files={**kept, **request.files}) if kept else request
                )
            except MissingTemplates as missing:
                if stored_files is None:
                    stored_files = await self._read_addressed_files(stack, conn)
                more = (missing.urls & stored_files.keys()) - kept.keys()
                if not more:
                    raise
                kept |= {url: stored_files[url] for url in more}

    async def _read_addressed_files(
        self, stack: stack_locks.LockedStack | StackRecord, conn: "Connection | None"
    ) -> Mapping[str, str]:
        """The stored templates of a stack that have been fetched from a URL, by it."""
        if conn is not None:
            stored = await find_template(conn, stack.id, stack.version)
        else:
            async with self._database.connection() as own:
                stored = await find_template(own, stack.id, stack.version)
        files = stored.files if stored else {}
        return {name: text for name, text in files.items() if is_template_address(name)}
