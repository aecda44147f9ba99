-- A resource with its current status: that of the operation that runs on it, if there is one.

drop view if exists current_resource;

create view current_resource as
select r.*,
       case when n.id is null then r.action
            when n.operation in ('update', 'replace') then 'UPDATE'
            else upper(n.operation) end as current_action,
       case when n.id is null then r.status else 'IN_PROGRESS' end as current_status,
       coalesce(n.reason, r.reason) as current_reason
  from resource r
  left join node n
    on n.stack_id = r.stack_id and n.resource_id = r.id
   and n.started_at is not null and n.ended_at is null
   and n.phase in ('execute', 'confirm');
