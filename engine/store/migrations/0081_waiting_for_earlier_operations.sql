-- Operations of earlier traversals for which nodes of the current one wait. Few nodes have a successor.
create index node_succeeded on node (stack_id, traversal) where successor is not null;
