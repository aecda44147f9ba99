"""The resources of drift hooks whose answers adopt observed values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.plan.overrides import Override, decode_overrides
from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import try_decrypt_row
from engine.store.encryption.secret_values import EncryptedDocument, Scope, Secret
from engine.store.hooks.drift_hooks import IS_ASKED
from engine.store.observer.external_resources import IS_EXTERNAL, external_names
from engine.words import Json

#: $1, $2: stacks, and hooks. current: the last observation is of the recorded state, and its drift
#: is the one that the hook asked about. operating: an operation of the resource has not ended, also
#: of a traversal that has. out_of_date: the last change has not been applied to the resource, or to
#: one that owns its nested stack.
READ = f"""
with {external_names("select unnest($1::uuid[])")}
select d.hook_id, r.stack_id, r.id as resource_id, r.type, r.properties, r.data,
       r.masked_properties is not null as has_secrets, r.lifecycle -> 'overrides' as overrides,
       {IS_EXTERNAL} as external, d.state, d.differences, t.state as traversal_state,
       clock_timestamp() as now,
       exists (select from observation b
                where b.stack_id = d.stack_id and b.resource_id = d.resource_id
                  and b.resolved_at is null and b.recorded_at = r.updated_at
                  and {IS_ASKED}) as current,
       exists (select from traversal a
                cross join lateral (
                      select from node n
                       where n.stack_id = a.stack_id and n.traversal = a.number
                         and n.resource_id = r.id and is_operating(n.state, n.phase) offset 0) n
                where a.stack_id = r.stack_id and a.active_nodes > 0) as operating,
       exists (with recursive owner (stack_id, id, digest) as (
                   select r.stack_id, r.id, r.digest
                   union all
                   select q.stack_id, q.id, q.digest
                     from owner o join stack c on c.id = o.stack_id
                     join resource q on q.stack_id = c.parent_id and q.id = c.parent_resource
               ) select from owner where digest = '') as out_of_date, s.project
  from unnest($1::uuid[], $2::uuid[]) k (stack_id, hook_id)
 cross join lateral (select * from drift_hook
                      where stack_id = k.stack_id and hook_id = k.hook_id offset 0) d
 cross join lateral (select * from resource
                      where stack_id = d.stack_id and id = d.resource_id
                        and replaced_by is null offset 0) r
 cross join lateral (select id, project, traversal from stack where id = d.stack_id offset 0) s
 cross join lateral (select state from traversal
                      where stack_id = s.id and number = s.traversal offset 0) t
"""  # noqa: S608 - of constants
#: $1: [{stack_id, resource_id, properties, data, overrides}].
WRITE = """
update resource r
   set properties = a.properties, data = a.data,
       lifecycle = coalesce(r.lifecycle, '{}') || jsonb_build_object('overrides', a.overrides),
       updated_at = clock_timestamp()
  from jsonb_to_recordset($1) as a (stack_id uuid, resource_id uuid, properties jsonb, data jsonb,
       overrides jsonb)
 where r.stack_id = a.stack_id and r.id = a.resource_id
   and r.stack_id = any (array(select (x ->> 'stack_id')::uuid from jsonb_array_elements($1) x))
   and r.id = any (array(select (x ->> 'resource_id')::uuid from jsonb_array_elements($1) x))
"""


#: Encrypted columns of a resource.
ENCRYPTED = ("properties", "data")


@dataclass(frozen=True, slots=True)
class AdoptableResource:
    """The resource of a drift hook, under its stack's lock. current: the drift that the hook asked
    about was observed last, and the resource has not changed since. has_secrets: of the
    properties; then the observed values are masked. encrypted: its values are, as they may contain
    secrets. undecryptable: the reason if they cannot be decrypted, or "". now: in ISO format.
    operating, out_of_date: see `READ`."""

    project: str
    stack_id: UUID
    resource_id: UUID
    type: str
    properties: Mapping[str, Json]
    data: Mapping[str, Json]
    has_secrets: bool
    encrypted: bool
    undecryptable: str
    overrides: Sequence[Override]
    external: bool
    state: str
    differences: Sequence[Mapping[str, Json]]
    traversal_state: str
    current: bool
    operating: bool
    out_of_date: bool
    now: str


@dataclass(frozen=True, slots=True)
class Adoption:
    """What an adoption writes."""

    resource: AdoptableResource
    properties: Mapping[str, Json]
    data: Mapping[str, Json]
    overrides: Sequence[Override]


async def read_adoptable(
    conn: Connection, keys: Sequence[tuple[UUID, UUID]]
) -> dict[UUID, AdoptableResource]:
    """By hook. keys: (stack, hook). A hook whose resource is gone is left out."""
    found: dict[UUID, AdoptableResource] = {}
    for row in await conn.fetch(READ, *map(list, zip(*keys, strict=True))):
        shown, reason = try_decrypt_row(row, row["project"], row["stack_id"], "resource", ENCRYPTED)
        hidden = any(isinstance(shown[name], EncryptedDocument) for name in ENCRYPTED)
        hook_id = shown.pop("hook_id")
        shown |= {
            "properties": {} if hidden else shown["properties"] or {},
            "data": {} if hidden else shown["data"] or {},
            "undecryptable": reason if hidden else "",
            "encrypted": any(isinstance(row[name], EncryptedDocument) for name in ENCRYPTED),
            "overrides": decode_overrides(shown["overrides"]),
            "now": row["now"].isoformat(),
        }
        found[hook_id] = AdoptableResource(**shown)
    return found


def _encrypt_value(one: Adoption, column: str, value: Json) -> Json:
    resource = one.resource
    scope = Scope(resource.project, resource.stack_id, f"resource.{column}")
    return Secret(value, scope) if resource.encrypted else value


async def write_adoptions(conn: Connection, adoptions: Sequence[Adoption]) -> None:
    """The caller has locked the stacks."""
    rows = [
        {
            "stack_id": one.resource.stack_id,
            "resource_id": one.resource.resource_id,
            "properties": _encrypt_value(one, "properties", one.properties),
            "data": _encrypt_value(one, "data", one.data),
            "overrides": [each.encode() for each in one.overrides],
        }
        for one in adoptions
    ]
    if rows:
        await conn.execute(WRITE, rows)
