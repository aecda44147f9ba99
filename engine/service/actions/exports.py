"""Export, abandon and adoption of stacks.

The format is the Orchestration API's: Headgate adopts stacks that Heat exported, and vice versa.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.errors import Findings
from engine.hot.environment.context_section import CONTEXT, REGION_NAME
from engine.hot.environment.merging import HIDDEN_PARAMETERS_SECTION
from engine.hot.syntax.document import read_document
from engine.hot.template.template import parse_template
from engine.principal import Principal
from engine.service.reads.stack_outputs import refuse_if_read
from engine.service.requests.adoption import read_adopted
from engine.service.requests.requests import StackRequest
from engine.service.traversals.start import Traversals, action_in_progress
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.records import StackRecord, TemplateRecord
from engine.store.resources import resource_reads
from engine.store.resources.current_resources import read_existing
from engine.store.stacks import stack_rows
from engine.store.stacks.stack_lists import find_stack
from engine.store.stacks.stack_locks import lock_trees
from engine.store.stacks.stack_rows import record_stack_event
from engine.store.stacks.templates import display_template, read_template
from engine.store.traversals.nested_stacks import read_nested_stacks, read_nested_tree
from engine.words import UNDER_WAY, Json


class Exports:
    def __init__(self, database: Database, traversals: Traversals) -> None:
        self._database = database
        self._traversals = traversals

    async def export(self, stack: StackRecord, *, partial: bool = False) -> Json:
        """The document with which another server can adopt the stack, secret values included.

        The entry of a resource with a nested stack is the document of the nested stack.

        partial: replace each value that cannot be decrypted with the reason. Raises
        DecryptionFailed for such a value unless partial.
        """
        async with self._database.connection() as conn:
            return await self._document(conn, stack, partial=partial)

    async def abandon(self, project: str, stack: StackRecord, by: Principal) -> Json:
        """Delete the records of the stack and its nested stacks without deleting physical
        resources; returns the partial export.

        Raises Conflict (ActionInProgress) while a traversal is under way or
        an operation runs.
        """
        async with self._database.transaction("accept") as conn:
            await lock_trees(conn, project, [str(stack.id)])
            locked = await self._traversals.lock_root(conn, project, stack.id, "abandoned")
            await refuse_if_read(conn, project, stack.id, locked.name, "abandoned")
            nested = await read_nested_tree(conn, stack.id)
            existing = [
                row for one in (stack.id, *nested) for row in await read_existing(conn, one)
            ]
            if locked.state in UNDER_WAY or any(row.running for row in existing):
                raise action_in_progress(
                    locked, "Wait until it ends, or stop it and wait for running operations."
                )
            document = await self._document(conn, stack, partial=True)
            await record_stack_event(
                conn,
                stack_id=stack.id,
                kind="headgate.stack.abandon.completed",
                action="ABANDON",
                status="COMPLETE",
                reason=f"Stack abandoned by {by}; its physical resources are kept",
                data={"traversal": locked.traversal, "version": locked.version,
                      "status": "COMPLETE"},
            )  # fmt: skip
            for one in (*reversed(nested), stack.id):
                await stack_rows.mark_deleted(conn, one)
        return document

    async def _document(self, conn: Connection, stack: StackRecord, *, partial: bool) -> Json:
        nested: dict[str, Json] = {}
        for physical_id, one in (await read_nested_stacks(conn, stack.id)).items():
            child = await find_stack(conn, stack.project, one.id, "")
            if child is not None:
                nested[physical_id] = await self._document(conn, child, partial=partial)
        if partial:
            stored = await display_template(conn, stack.id, stack.version)
            rows = await resource_reads.display_exported(conn, stack.id)
        else:
            stored = await read_template(conn, stack.id, stack.version)
            rows = await resource_reads.read_exported(conn, stack.id)
        return _document(stack, stored.restore_order(), rows, nested)

    def adoption(self, project: str, request: StackRequest, export: Json) -> StackRequest:
        """The request with the resources of an export to adopt.

        export: a map, or JSON or YAML text. Fields of the request take precedence over
        the export; the region of the export stays unless the environment of the request names one.
        Raises Invalid.
        """
        source = self._traversals.limits.for_project(project).source
        text = "adopt_stack_data"
        data = read_document(export, text, source) if isinstance(export, str) else export
        findings = Findings()
        if not isinstance(data, Mapping) or not isinstance(data.get("resources"), Mapping):
            findings.add(
                text, "is not an exported stack", "Send the output of `headgate stack export`."
            )
        findings.raise_if_any()
        adopted = read_adopted(data["resources"], findings)
        findings.raise_if_any()
        has_environment = bool(request.environment or request.environment_files)
        return replace(
            request,
            template=request.template or data.get("template"),
            environment=request.environment if has_environment else data.get("environment"),
            files={**(data.get("files") or {}), **request.files},
            tags=request.tags if request.tags is not None else data.get("tags"),
            adopted=adopted,
            private_outputs=bool(data.get("private_outputs")),
            current_region=_exported_region(data.get("environment")),
        )


def _exported_region(environment: Json) -> str | None:
    """The region that the environment of an export names; None: none, or no valid one."""
    section = environment.get(CONTEXT) if isinstance(environment, Mapping) else None
    region = section.get(REGION_NAME) if isinstance(section, Mapping) else None
    return region if isinstance(region, str) and region else None


def _document(
    stack: StackRecord,
    stored: TemplateRecord,
    rows: Sequence[resource_reads.ExportedResource],
    nested: Mapping[str, Json],
) -> Json:
    """nested: the documents of nested stacks, by the physical IDs of their resources."""
    environment = dict(stored.environment)
    environment["parameters"] = {**(environment.get("parameters") or {}), **stored.parameters}
    if hidden := _hidden_by_other_stacks(stored):
        environment[HIDDEN_PARAMETERS_SECTION] = sorted(
            hidden.union(environment.get(HIDDEN_PARAMETERS_SECTION, ()))
        )
    was_nested = {"private_outputs": True} if stack.private_outputs else {}
    return {
        **was_nested,
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
        "resources": {one.name: _resource(one, nested.get(one.physical_id or "")) for one in rows},
    }


def _resource(one: resource_reads.ExportedResource, nested: Json) -> Json:
    """nested: the document of its nested stack, which takes precedence, as in Heat."""
    return {
        "name": one.name,
        "resource_id": one.physical_id,
        "type": one.type,
        "action": one.action,
        "status": one.status,
        "metadata": one.metadata,
        "resource_data": one.data,
        **(nested or {}),
    }


def _hidden_by_other_stacks(stored: TemplateRecord) -> frozenset[str]:
    """Names of the hidden parameters that the template does not declare hidden."""
    schemas = parse_template(stored.template).parameters
    declared = (name for name, one in schemas.items() if one.hidden)
    return frozenset(stored.hidden_parameters).difference(declared)
