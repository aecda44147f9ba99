-- The events of one resource are found by its name, in their order.
create index event_of_resource on event (stack_id, resource_name, sequence) where resource_name is not null;
