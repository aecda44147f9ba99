-- Software deployments that are resources of stacks.
alter table software_deployment
    add column stack_id uuid,
    add column resource_id uuid,
    add column operation_key uuid; -- of the operation that published it; its config has this id
