-- Graphs that a newer change has replaced, and whose nodes are still in `node`. They are moved to
-- archived_graph after that change was accepted.
create table archive_queue (
    stack_id uuid not null,
    traversal integer not null,
    primary key (stack_id, traversal)
);

-- A graph is archived in parts, each in a row of its own. part: ID of the first node of the row.
alter table archived_graph add column part integer not null default 0;
alter table archived_graph
    drop constraint archived_graph_pkey,
    add primary key (stack_id, traversal, part);

insert into archive_queue (stack_id, traversal)
select distinct n.stack_id, n.traversal
  from node n join stack s on s.id = n.stack_id
 where n.traversal < s.traversal;
