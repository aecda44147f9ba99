"""A stack carried elsewhere: export, abandon, and what adoption reads.

The form is the Orchestration API's, so what Heat wrote is adopted here and the other way round.
"""

from collections.abc import Mapping
from dataclasses import replace

from engine.errors import Conflict, Finding, Findings, Invalid
from engine.hot.source import read_document
from engine.plan.draft import Adopted
from engine.service.blueprint import Blueprint
from engine.service.outermost import check_nothing_inside, check_outermost
from engine.service.requests import StackRequest
from engine.service.traversals import UNDER_WAY, Traversals
from engine.store import exports
from engine.store.accept import record_stack_event
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.existing import read_existing
from engine.store.nested import inside
from engine.store.read import read_template
from engine.store.records import StackRecord
from engine.types.registry import Registry
from engine.words import Json

RETAIN = "Give their resources deletion_policy Retain, and take them out: each is a stack then."


class Exports:
    def __init__(self, database: Database, traversals: Traversals) -> None:
        self._database = database
        self._traversals = traversals

    async def export(self, stack: StackRecord) -> Json:
        """Everything another server needs to adopt the stack; secrets are in it.

        Invalid (NotSupported) for a stack that holds others, which no server could adopt with it.
        """
        async with self._database.connection() as conn:
            return await self._document(conn, stack)

    async def abandon(self, project: str, stack: StackRecord, by: str) -> Json:
        """Forget the stack and touch nothing real; returns the export. Invalid as `export`.

        Conflict (ActionInProgress) while a change is under way or an operation still runs.
        """
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack.id)
            check_outermost(locked, "abandoned")
            existing = await read_existing(conn, stack.id)
            if locked.state in UNDER_WAY or any(row.running for row in existing):
                raise Conflict(
                    f"Stack {stack.name} already has an action ({locked.action}) in progress.",
                    remedy="Wait for its end, or cancel it and wait for what runs.",
                    code="ActionInProgress",
                )
            document = await self._document(conn, stack)
            await record_stack_event(
                conn,
                stack_id=stack.id,
                kind="headgate.stack.abandon.completed",
                action="ABANDON",
                status="COMPLETE",
                reason=f"Stack abandoned by {by}; nothing real was deleted",
                data={"traversal": locked.traversal, "version": locked.version,
                      "status": "COMPLETE"},
            )  # fmt: skip
            await exports.let_go(conn, stack.id)
        return document

    async def _document(self, conn: Connection, stack: StackRecord) -> Json:
        there = await inside(conn, stack.id)
        check_nothing_inside(stack.name, there, "An export", RETAIN)
        stored = await read_template(conn, stack.id, stack.version)
        environment = dict(stored.environment)
        environment["parameters"] = {**(environment.get("parameters") or {}), **stored.parameters}
        return {
            "name": stack.name,
            "id": str(stack.id),
            "action": stack.action,
            "status": stack.status,
            "template": stored.template,
            "environment": environment,
            "files": stored.files,
            "project_id": stack.project,
            "stack_user_project_id": stack.project,
            "tags": stack.tags,
            "resources": {
                one.name: {
                    "name": one.name,
                    "resource_id": one.physical_id,
                    "type": one.type,
                    "action": one.action,
                    "status": one.status,
                    "metadata": one.metadata,
                    "resource_data": one.data,
                }
                for one in await exports.exported(conn, stack.id)
            },
        }

    def adoption(self, project: str, request: StackRequest, given: Json) -> StackRequest:
        """The request for a stack that adopts what was exported. given: a map, or JSON or YAML
        text. What the request says itself wins. Raises Invalid."""
        source = self._traversals.limits.of(project).source
        text = "adopt_stack_data"
        data = read_document(given, text, source) if isinstance(given, str) else given
        findings = Findings()
        if not isinstance(data, Mapping) or not isinstance(data.get("resources"), Mapping):
            findings.add(text, "is no exported stack", "Send what `stack export` gave.")
        findings.raise_if_any()
        adopted = _adopted(data["resources"], findings)
        findings.raise_if_any()
        said = bool(request.environment or request.environment_files)
        return replace(
            request,
            template=request.template or data.get("template"),
            environment=request.environment if said else data.get("environment"),
            files={**(data.get("files") or {}), **request.files},
            tags=request.tags if request.tags is not None else data.get("tags"),
            adopted=adopted,
        )


def check_adopted(blueprint: Blueprint, request: StackRequest, registry: Registry) -> None:
    """Raises Invalid with all that cannot be adopted, or would have to be."""
    known, resources = request.adopted or {}, blueprint.definition.resources
    wrong = [
        Finding(
            f"resources.{name}",
            "Resource ID was not provided.",
            "Name the real thing in adopt_stack_data, or leave the resource out.",
            "StackValidationFailed",
        )
        for name, one in resources.items()
        if name not in known and one.external_id is None
    ]
    wrong += [
        Finding(
            f"resources.{name}",
            "A stack inside of another cannot be adopted.",
            "Adopt it as a stack of its own, without what is around it.",
            "NotSupported",
        )
        for name, one in resources.items()
        if name in known and registry.get(one.type).nests
    ]
    if wrong:
        raise Invalid(wrong)


def _adopted(resources: Mapping[str, Json], findings: Findings) -> dict[str, Adopted]:
    adopted: dict[str, Adopted] = {}
    for name, one in resources.items():
        place = f"adopt_stack_data.resources.{name}"
        if not isinstance(one, Mapping):
            findings.add(place, "is no map", "Send what `stack export` gave.")
            continue
        physical_id = one.get("resource_id")
        if physical_id is None:
            continue
        data, metadata = one.get("resource_data") or {}, one.get("metadata") or {}
        if not isinstance(data, Mapping) or not isinstance(metadata, Mapping):
            findings.add(place, "has data that is no map", "Send what `stack export` gave.")
            continue
        adopted[name] = Adopted(str(physical_id), dict(data), dict(metadata))
    return adopted
