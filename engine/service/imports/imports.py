"""Reads existing resources, and writes a template that imports them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Finding, Findings, HeadgateError
from engine.hooks.operator import has_rule_for
from engine.hot.environment.context_section import read_context
from engine.hot.schema.properties import check_resolved
from engine.hot.schema.type_schema import TypeSchema, unknown_type_remedy, without_required
from engine.service.imports.import_template import (
    ImportedObject,
    ImportTemplate,
    write_import_template,
)
from engine.service.requests.blueprint import Limits
from engine.service.requests.external_validation import ExternalValidation
from engine.store.database import Database
from engine.store.maintenance.monitoring import read_now
from engine.types.contract import Call, ResourceType
from engine.types.live_object import LiveObject, UnreadableCode, UnreadableObject
from engine.types.observation import Difference
from engine.types.operator_credentials import credential_properties
from engine.types.registry import TypeRegistry
from engine.words import Json, ResourceId, StackId

log: FilteringBoundLogger = structlog.get_logger()

#: Objects of one request, concurrent reads of one request, and seconds for one read.
MAX_OBJECTS, MAX_CONCURRENT, READ_SECONDS = 100, 8, 30.0
_NONE = UUID(int=0)


@dataclass(frozen=True, slots=True)
class ObjectToImport:
    """properties: those that the caller gives."""

    type: str
    id: str
    properties: Mapping[str, Json] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ReadObject:
    """name: of the resource. unread: reasons by property. differences: what the object has
    otherwise than its resource in the template."""

    name: str
    type: str
    physical_id: str
    properties: Mapping[str, Json] = field(repr=False)
    unread: Mapping[str, str]
    differences: Sequence[Difference]


@dataclass(frozen=True, slots=True)
class ImportResult:
    """findings: about the objects that could not be read, which the template leaves out."""

    template: ImportTemplate
    objects: Sequence[ReadObject]
    findings: Sequence[Finding]


class Imports:
    def __init__(
        self,
        database: Database,
        registry: TypeRegistry,
        limits: Limits,
        external_validation: ExternalValidation,
    ) -> None:
        self._database = database
        self._external_validation = external_validation
        self._registry = registry
        self._limits = limits

    async def read(
        self,
        project: str,
        wanted: Sequence[ObjectToImport],
        credential: str,
        context: Mapping[str, Json],
    ) -> ImportResult:
        """Read objects with the credential of the caller, and change nothing. context: as in the
        environment of a stack. Raises Invalid for a context that is not valid."""
        wrong = Findings()
        region = read_context(context, wrong)
        wrong.raise_if_any()
        await self._external_validation.validate_region(project, credential, region)
        async with self._database.connection() as conn:
            now = await read_now(conn)
        types = self._available_types(project)
        calls: dict[int, tuple[ResourceType, Call]] = {}
        errors: dict[int, Sequence[Finding]] = {}
        listed: set[tuple[str, str]] = set()
        for number, one in enumerate(wanted):
            findings, place = Findings(), f"resources[{number}]"
            given = _check_properties(types, one, place, findings)
            self._check_credential(project, types.get(one.type), given, place, findings)
            if (one.type, one.id) in listed:
                findings.add(f"{place}.id", "the object is listed twice", "Remove one of two.")
            listed.add((one.type, one.id))
            if findings.all:
                errors[number] = findings.all
            else:
                type_ = self._registry.get(one.type)
                calls[number] = type_, Call(
                    project=project, stack_id=StackId(_NONE), stack_name="",
                    resource_id=ResourceId(_NONE), resource_name="", operation_key=_NONE, now=now,
                    properties=given, physical_id=one.id, region=region,
                    credential=credential if type_.uses_credential else "",
                )  # fmt: skip
        found = await _read_all(calls, frozenset(one.id for one in wanted))
        live: list[tuple[ResourceType, ObjectToImport, LiveObject]] = []
        for number, (type_, _) in calls.items():
            if isinstance(read := found[number], LiveObject):
                live.append((type_, wanted[number], read))
            else:
                errors[number] = [_finding(f"resources[{number}]", read)]
        return _result(live, [one for number in sorted(errors) for one in errors[number]])

    def _check_credential(
        self, project: str, schema: TypeSchema | None, given: Mapping[str, Json], place: str,
        findings: Findings,
    ) -> None:  # fmt: skip
        """No hook precedes the read, so a credential of the operator is refused where an operator
        rule can block the creation of such a resource."""
        rules = self._limits.for_project(project).operator
        if schema is None or not has_rule_for(rules, project, schema.name):
            return
        for key in given.keys() & set(credential_properties(schema)):
            findings.add(
                f"{place}.properties.{key}",
                f"an operator rule applies to {schema.name}, and an import opens no hook, so it"
                " does not use a credential of the operator",
                "Remove it, or write the resource by hand, with an entry in `import`.",
                "Forbidden",
            )

    def _available_types(self, project: str) -> Mapping[str, TypeSchema]:
        """The types that the project has and that are not templates of the operator."""
        environment = self._limits.for_project(project).environment
        types = environment.available_types(self._registry.schemas())
        return {name: one for name, one in types.items() if name not in environment.types}


def _check_properties(
    types: Mapping[str, TypeSchema], one: ObjectToImport, place: str, findings: Findings
) -> dict[str, Json]:
    """The given properties, each valid by itself."""
    if (schema := types.get(one.type)) is None:
        remedy = unknown_type_remedy(one.type, list(types)) or "`headgate type list` has the types."
        reason = f"The Resource Type ({one.type}) could not be found."
        findings.add(f"{place}.type", reason, remedy, "EntityNotFound")
        return {}
    known = without_required(schema)
    return check_resolved(known, one.properties, f"{place}.properties", findings)


async def _read_all(
    calls: Mapping[int, tuple[ResourceType, Call]], imported: frozenset[str]
) -> dict[int, LiveObject | UnreadableObject]:
    found: dict[int, LiveObject | UnreadableObject] = {}
    limit = asyncio.Semaphore(MAX_CONCURRENT)

    async def read(number: int, type_: ResourceType, call: Call) -> None:
        async with limit:
            found[number] = await _read_one(type_, call, imported)

    async with asyncio.TaskGroup() as tasks:
        for number, (type_, call) in calls.items():
            tasks.create_task(read(number, type_, call))
    return found


async def _read_one(
    type_: ResourceType, call: Call, imported: frozenset[str]
) -> LiveObject | UnreadableObject:
    try:
        async with asyncio.timeout(READ_SECONDS):
            return await type_.read_live(call, imported)
    except UnreadableObject as error:
        return error
    except TimeoutError:
        reason = f"it could not be read within {READ_SECONDS:g} s"
        return UnreadableObject(UnreadableCode.UNAVAILABLE, "id", reason, "Try again later.")
    except HeadgateError as error:
        finding = error.finding
        code = UnreadableCode.UNAVAILABLE
        return UnreadableObject(code, "id", finding.reason, finding.remedy)
    except Exception as error:  # code of a plug-in: its text may have a secret
        log.error("import.read_failed", type=type_.schema.name, error=type(error).__name__)
        reason = f"{type_.schema.name} failed to read it; see the server's log"
        return UnreadableObject(UnreadableCode.UNAVAILABLE, "type", reason, "Try again later.")


def _finding(place: str, error: UnreadableObject) -> Finding:
    return Finding(f"{place}.{error.place}", str(error), error.remedy, error.code.value)


def _reference(type_: ResourceType, physical_id: str) -> str | None:
    """The value of get_resource; None: secret, or not known."""
    if type_.schema.has_secret_reference():
        return None
    try:
        return type_.reference("", physical_id, {})
    except Exception as error:  # code of a plug-in
        log.error("import.reference_failed", type=type_.schema.name, error=type(error).__name__)
        return None


def _result(
    live: Sequence[tuple[ResourceType, ObjectToImport, LiveObject]], errors: Sequence[Finding]
) -> ImportResult:
    objects = [
        ImportedObject(
            schema=type_.schema,
            physical_id=wanted.id,
            name=one.name,
            properties=one.properties,
            unread=one.unread,
            reference=_reference(type_, wanted.id),
            secrets=one.secrets,
        )
        for type_, wanted, one in live
    ]
    template = write_import_template(objects)
    read = [
        ReadObject(name, wanted.type, wanted.id, one.properties, one.unread, one.differences)
        for name, (_, wanted, one) in zip(template.names, live, strict=True)
    ]
    return ImportResult(template, read, errors)
