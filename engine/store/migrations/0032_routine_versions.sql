-- Routines have a version, so that an older process never replaces newer ones.

create table if not exists routines (
    only_one boolean primary key default true check (only_one),
    digest text not null
);
alter table routines
    add column version integer not null default 0,          -- 0: before routines had versions
    add column released boolean not null default false;     -- false: on the way to that version

-- What a deleted stack's snapshots held. What deletion_policy: Snapshot kept was written by other
-- actions, and stays.
delete from resource_snapshot k
 using traversal t
 where t.stack_id = k.stack_id and t.number = k.traversal and t.action = 'SNAPSHOT'
   and not exists (select from snapshot p
                    where p.stack_id = k.stack_id and p.traversal = k.traversal);
