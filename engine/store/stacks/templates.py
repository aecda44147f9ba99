"""Template versions of stacks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engine.hot.evaluation.stack_outputs import (
    OutputName,
    StackOutput,
    encode_stack_outputs,
    sources_of,
)
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_record, display_record
from engine.store.encryption.secret_values import DecryptionFailed, Scope, Secret, decrypt
from engine.store.key_order import order_of
from engine.store.records import TemplateRecord, VersionRecord
from engine.words import Json

DELETE_OLD_VERSIONS = """
delete from template t
 where t.stack_id = $1
   and t.version <= (select max(version) from template where stack_id = $1) - $2
   and t.version <> (select version from stack where id = $1)
   and t.version is distinct from (
       select version from traversal
        where stack_id = $1 and state = 'complete'
          and action in ('CREATE', 'UPDATE', 'ROLLBACK', 'ADOPT', 'RESTORE')
        order by number desc limit 1)
   and t.version not in (select version from snapshot where stack_id = $1)
"""
READ_TEMPLATE = """
select s.project, t.version, t.template, t.environment, t.files, t.parameters, t.hidden_parameters,
       t.created_at, t.source, t.key_order, t.stack_outputs
  from template t join stack s on s.id = t.stack_id
 where t.stack_id = $1 and t.version = $2
"""
READ_VERSIONS = """
select t.version, t.description, t.requested_by, t.created_at, t.version = s.version as current,
       r.number is not null as reached
  from template t join stack s on s.id = t.stack_id
  left join lateral (
       select number from traversal v
        where v.stack_id = t.stack_id and v.version = t.version and v.state = 'complete'
          and v.action in ('CREATE', 'UPDATE', 'ROLLBACK', 'ADOPT', 'RESTORE') limit 1) r on true
 where t.stack_id = $1 order by t.version desc
"""
READ_SUMMARY = """
select t.masked_parameters, t.outputs,
       coalesce(t.template ->> 'heat_template_version', t.template ->> 'AWSTemplateFormatVersion',
                t.template ->> 'HeatTemplateFormatVersion', '') as written_in,
       s.project
  from template t join stack s on s.id = t.stack_id
 where t.stack_id = $1 and t.version = $2
"""
#: Of current versions whose environment maps types. $3: of all versions.
READ_WRITTEN_TYPES = """
select s.id as stack_id, t.environment -> 'resource_registry' as registry, w.types
  from stack s
  join template t on t.stack_id = s.id and t.version = s.version
 cross join lateral (
        select jsonb_object_agg(r.key, coalesce(r.value ->> 'type', r.value ->> 'Type')) as types
          from jsonb_each(coalesce(nullif(t.template -> 'resources', 'null'),
                                   nullif(t.template -> 'Resources', 'null'), '{}')) r
         where $2::text is null or r.key = $2) w
 where s.id = any ($1::uuid[]) and w.types is not null
   and ($3 or coalesce(t.environment -> 'resource_registry', '{}') not in ('{}', 'null'))
"""

#: Of a version that the traversal does not store itself: of the version, if it scales; and of those
#: since the last version that was applied as a whole.
READ_REQUESTERS = """
select distinct v.requested_by, v.requested_by_id from template v
 where v.stack_id = $1 and v.version <= $2
   and (v.version = $2 and $3
        or v.version > coalesce((
               select max(t.version) from traversal t
                where t.stack_id = $1 and t.version <= $2 and t.state = 'complete'
                  and t.out_of_date = '{}'
                  and t.action in ('CREATE', 'ADOPT', 'UPDATE', 'ROLLBACK', 'RESTORE')
                  and not exists (select from traversal o
                                   where o.stack_id = t.stack_id and o.version = t.version
                                     and o.number < t.number)), 0))
"""

NO_OUTPUTS: Mapping[OutputName, StackOutput] = {}


@dataclass(frozen=True, slots=True)
class TemplateSummary:
    """parameters: texts, with secrets masked. outputs: as stored. written_in: the version of the
    template language. undecryptable: the reason if the outputs cannot be decrypted, or ""."""

    parameters: Json
    outputs: Json
    written_in: str
    undecryptable: str = ""


@dataclass(frozen=True, slots=True)
class StackTypes:
    """types: the type that the template writes for each resource, by name. registry: the
    `resource_registry` of the stack's environment."""

    stack_id: UUID
    registry: Json
    types: Mapping[str, str]


def version_document(
    *,
    project: str,
    stack_id: UUID,
    version: int,
    description: str,
    template: Json,
    environment: Json,
    files: Json,
    parameters: Json,
    masked_parameters: Json,
    hidden_parameters: Iterable[str],
    outputs: Json,
    requested_by: Principal,
    source: str | None,
    template_order: Json = None,
    stack_outputs: Mapping[OutputName, StackOutput] = NO_OUTPUTS,
) -> Json:
    """The columns of a new version, for `accept_change`. template_order: the order of the
    template's keys; None: that of `template`. stack_outputs: the outputs of other stacks that the
    version reads.

    If a parameter is hidden, the columns that can contain its value or a part of it are
    encrypted; likewise if the output of another stack is secret.
    """
    read: Json = encode_stack_outputs(stack_outputs)
    sources = [UUID(one) for one in sources_of(stack_outputs.values())]
    key_order: Json = {
        name: order
        for name, order in (
            ("template", template_order or order_of(template)),
            ("environment", order_of(environment)),
            ("parameters", order_of(parameters)),
        )
        if order is not None
    }

    def secret(column: str, value: Json) -> Secret:
        return Secret(value, Scope(project, stack_id, f"template.{column}"))

    hidden = sorted(hidden_parameters)
    if hidden or any(one.secret for one in stack_outputs.values()):
        outputs, read = secret("outputs", outputs), secret("stack_outputs", read)
    if hidden:
        values = ("parameters", "parameter_defaults")
        environment = {name: secret("environment", value) if name in values else value
                       for name, value in environment.items()}  # fmt: skip
        files, parameters = secret("files", files), secret("parameters", parameters)
        key_order = secret("key_order", key_order)
    return {
        "stack_id": stack_id,
        "version": version,
        "description": description,
        "template": template,
        "environment": environment,
        "files": files,
        "parameters": parameters,
        "masked_parameters": masked_parameters,
        "hidden_parameters": hidden,
        "outputs": outputs,
        "requested_by": requested_by.name,
        "source": source,
        "requested_by_id": requested_by.id,
        "requested_by_roles": list(requested_by.roles),
        "key_order": key_order,
        "stack_outputs": read,
        "sources": sources,
    }


async def delete_old_versions(conn: Connection, stack_id: UUID, max_versions: int) -> None:
    """Keep the newest versions, and those that the stack or a snapshot can return to."""
    await conn.execute(DELETE_OLD_VERSIONS, stack_id, max_versions)


async def read_template(conn: Connection, stack_id: UUID, version: int) -> TemplateRecord:
    """Raises DecryptionFailed."""
    row = _existing(await conn.fetchrow(READ_TEMPLATE, stack_id, version))
    return decrypt_record(TemplateRecord, row, stack_id, "template")


async def display_template(conn: Connection, stack_id: UUID, version: int) -> TemplateRecord:
    """As `read_template`, but a column that cannot be decrypted is replaced by the reason."""
    row = _existing(await conn.fetchrow(READ_TEMPLATE, stack_id, version))
    return display_record(TemplateRecord, row, stack_id, "template")


async def find_template(conn: Connection, stack_id: UUID, version: int) -> TemplateRecord | None:
    """Raises DecryptionFailed."""
    row = await conn.fetchrow(READ_TEMPLATE, stack_id, version)
    return decrypt_record(TemplateRecord, row, stack_id, "template") if row else None


def _existing(row: Any) -> Any:
    """The row. Raises LookupError if it is missing although another row refers to it."""
    if row is None:
        raise LookupError("a stack's version or traversal is missing from the database")
    return row


async def read_versions(conn: Connection, stack_id: UUID) -> list[VersionRecord]:
    """Newest first."""
    return [VersionRecord(**row) for row in await conn.fetch(READ_VERSIONS, stack_id)]


async def read_template_summary(conn: Connection, stack_id: UUID, version: int) -> TemplateSummary:
    row = _existing(await conn.fetchrow(READ_SUMMARY, stack_id, version))
    try:
        outputs = decrypt(row["outputs"], Scope(row["project"], stack_id, "template.outputs"))
    except DecryptionFailed as error:
        return TemplateSummary(row["masked_parameters"], [], row["written_in"], str(error))
    return TemplateSummary(row["masked_parameters"], outputs, row["written_in"])


async def read_written_types(
    conn: Connection, stacks: Sequence[UUID], name: str | None, *, always: bool
) -> list[StackTypes]:
    """The types in the current templates of stacks whose environments map types. name: only of this
    resource. always: also of the other stacks."""
    rows = await conn.fetch(READ_WRITTEN_TYPES, list(stacks), name, always)
    return [StackTypes(**row) for row in rows]


async def read_requesters(
    conn: Connection, stack_id: UUID, version: int, *, scales: bool
) -> list[str]:
    """Return the keys of the principals who requested what a traversal toward a stored version
    applies: the version itself, if it `scales`; and each since the last version that was applied
    as a whole."""
    rows = await conn.fetch(READ_REQUESTERS, stack_id, version, scales)
    return sorted({Principal(row["requested_by_id"], row["requested_by"]).key for row in rows})
