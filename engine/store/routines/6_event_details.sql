-- An event with its stack, its root stack and its hook.

drop view if exists event_details;

create view event_details as
select e.stack_id, e.sequence, e.id, e.type, e.time, e.resource_name, e.resource_type,
       e.physical_id, e.action, e.status, e.reason, e.data, e.traceparent,
       s.project as stack_project, s.name as stack_name, s.owner, coalesce(r.tags, s.tags) as tags,
       s.created_at as stack_created_at, s.path as stack_path, s.root_id, r.name as root_name,
       h.id as h_id, h.project as h_project, h.traversal as h_traversal, h.node as h_node,
       h.root_stack_id as h_root_stack_id, h.root_stack_name as h_root_stack_name,
       h.resource_name as h_resource_name, h.path as h_path, h.point as h_point, h.mode as h_mode,
       h.state as h_state, h.opened_at as h_opened_at, h.deadline as h_deadline,
       h.on_timeout as h_on_timeout, h.digest as h_digest, h.decision as h_decision,
       h.reason as h_reason, h.decided_by as h_decided_by, h.channel as h_channel,
       h.decided_at as h_decided_at, h.notification as h_notification, h.rule as h_rule,
       h.requested_by as h_requested_by, h.requested_by_id as h_requested_by_id,
       h.assigned as h_assigned,
       h.escalated_at as h_escalated_at, h.reminders as h_reminders,
       h.approved_by as h_approved_by, h.operator_approval as h_operator_approval
  from event e
  left join stack s on s.id = e.stack_id
  left join stack r on r.id = s.root_id
  left join lateral (
       select * from hook_details d
        where d.stack_id = e.stack_id and d.id = (e.data ->> 'hook_id')::uuid offset 0) h on true;
