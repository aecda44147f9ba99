"""Export, abandon and adoption of stacks.

The format is the Orchestration API's: Headgate adopts stacks that Heat exported, and vice versa.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.errors import Conflict, Finding, Findings, Invalid
from engine.hot.syntax.document import read_document
from engine.plan.draft import Adopted
from engine.principal import Principal
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.requests import StackRequest
from engine.service.requests.root_stack import check_no_nested_stacks, check_root_stack
from engine.service.traversals.start import UNDER_WAY, Traversals
from engine.store import stack_exports
from engine.store.connection import Connection
from engine.store.current_resources import read_existing
from engine.store.database import Database
from engine.store.nested_stacks import inside
from engine.store.records import StackRecord, TemplateRecord
from engine.store.secret_rows import UNDECRYPTABLE
from engine.store.stack_queries import read_template, show_template
from engine.store.stack_rows import record_stack_event
from engine.types.registry import Registry
from engine.words import Json

RETAIN = "Give their resources deletion_policy Retain, and take them out: each is a stack then."


class Exports:
    def __init__(self, database: Database, traversals: Traversals) -> None:
        self._database = database
        self._traversals = traversals

    async def export(self, stack: StackRecord, *, partial: bool = False) -> Json:
        """The document with which another server can adopt the stack, secret values included.

        partial: replace each value that cannot be decrypted with the reason. Raises Sealed for
        such a value unless partial; Invalid (NotSupported) for a stack with nested stacks.
        """
        async with self._database.connection() as conn:
            return await self._document(conn, stack, partial=partial)

    async def abandon(self, project: str, stack: StackRecord, by: Principal) -> Json:
        """Delete the stack's records without deleting physical resources; returns the partial
        export.

        Raises Invalid as `export`; Conflict (ActionInProgress) while a traversal is under way or
        an operation runs.
        """
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack.id)
            check_root_stack(locked, "abandoned")
            existing = await read_existing(conn, stack.id)
            if locked.state in UNDER_WAY or any(row.running for row in existing):
                raise Conflict(
                    f"Stack {stack.name} already has an action ({locked.action}) in progress.",
                    remedy="Wait until it ends, or cancel it and wait for running operations.",
                    code="ActionInProgress",
                )
            document = await self._document(conn, stack, partial=True)
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
            await stack_exports.let_go(conn, stack.id)
        return document

    async def _document(self, conn: Connection, stack: StackRecord, *, partial: bool) -> Json:
        nested = await inside(conn, stack.id)
        check_no_nested_stacks(stack.name, nested, "An export", RETAIN)
        if partial:
            stored = await show_template(conn, stack.id, stack.version)
            return _document(stack, stored, await stack_exports.shown_resources(conn, stack.id))
        stored = await read_template(conn, stack.id, stack.version)
        return _document(stack, stored, await stack_exports.exported(conn, stack.id))

    def adoption(self, project: str, request: StackRequest, given: Json) -> StackRequest:
        """The request with the resources of an export to adopt. given: the export as a map, or as
        JSON or YAML text. Fields of the request take precedence over the export. Raises Invalid.
        """
        source = self._traversals.limits.of(project).source
        text = "adopt_stack_data"
        data = read_document(given, text, source) if isinstance(given, str) else given
        findings = Findings()
        if not isinstance(data, Mapping) or not isinstance(data.get("resources"), Mapping):
            findings.add(text, "is not an exported stack", "Send what `stack export` gave.")
        findings.raise_if_any()
        adopted = _adopted(data["resources"], findings)
        findings.raise_if_any()
        has_environment = bool(request.environment or request.environment_files)
        return replace(
            request,
            template=request.template or data.get("template"),
            environment=request.environment if has_environment else data.get("environment"),
            files={**(data.get("files") or {}), **request.files},
            tags=request.tags if request.tags is not None else data.get("tags"),
            adopted=adopted,
        )


def _document(
    stack: StackRecord, stored: TemplateRecord, resources: Sequence[stack_exports.Exported]
) -> Json:
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
            for one in resources
        },
    }


def check_adopted(blueprint: Blueprint, request: StackRequest, registry: Registry) -> None:
    """Raise Invalid for all nested stacks to adopt, and for resources without a physical ID."""
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
            "A nested stack cannot be adopted.",
            "Adopt it as a root stack, without its parent.",
            "NotSupported",
        )
        for name, one in resources.items()
        if name in known and registry.get(one.type).has_nested_stack
    ]
    if wrong:
        raise Invalid(wrong)


def _adopted(resources: Mapping[str, Json], findings: Findings) -> dict[str, Adopted]:
    adopted: dict[str, Adopted] = {}
    for name, one in resources.items():
        place = f"adopt_stack_data.resources.{name}"
        if not isinstance(one, Mapping):
            findings.add(place, "is not a map", "Send what `stack export` gave.")
            continue
        physical_id = one.get("resource_id")
        data, metadata = one.get("resource_data") or {}, one.get("metadata") or {}
        if not isinstance(data, Mapping) or not isinstance(metadata, Mapping):
            findings.add(place, "has data that is not a map", "Send what `stack export` gave.")
            continue
        if {UNDECRYPTABLE} in (set(data), set(metadata)):
            reason = "could not be decrypted where it was abandoned"
            findings.add(place, reason, "Write its resource_data and metadata, or leave them out.")
            continue
        if physical_id is None:
            continue
        adopted[name] = Adopted(str(physical_id), dict(data), dict(metadata))
    return adopted
