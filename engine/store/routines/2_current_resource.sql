-- Operations that run, and resources with their current status: that of the operation that runs on
-- a resource, if there is one.

drop view if exists current_resource, running_operation;

create view running_operation as
select n.stack_id, n.resource_id, n.name, n.reason,
       current_action_of(n.operation) as action
  from node n
 where n.started_at is not null and is_operating(n.state, n.phase);

-- For one resource: to find its operation, PostgreSQL reads all nodes of its stack.
create view current_resource as
select r.*, coalesce(o.action, r.action) as current_action,
       case when o.action is null then r.status else 'IN_PROGRESS' end as current_status,
       coalesce(o.reason, r.reason) as current_reason
  from resource r
  left join running_operation o on o.stack_id = r.stack_id and o.resource_id = r.id;
