-- Software deployments that are resources of stacks.
alter table software_deployment
    add column stack_id uuid,
    add column resource_id uuid,
    add column operation_key uuid; -- of the operation that published it; its config has this id
create index software_deployment_by_stack on software_deployment (stack_id)
 where stack_id is not null;
