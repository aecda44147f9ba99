-- A resource as it is now: with the operation that runs on it, if one does, and what that waits for.

drop view if exists resource_now;

create view resource_now as
select r.*,
       case when n.id is null then r.action
            when n.operation in ('update', 'replace') then 'UPDATE'
            else upper(n.operation) end as shown_action,
       case when n.id is null then r.status else 'IN_PROGRESS' end as shown_status,
       coalesce(n.reason, r.reason) as shown_reason
  from resource r
  left join node n
    on n.stack_id = r.stack_id and n.resource_id = r.id
   and n.started_at is not null and n.ended_at is null
   and n.phase in ('act', 'confirm');
