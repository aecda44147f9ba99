-- The graphs of traversals whose nodes are gone: what was done to what, in which order, and how it
-- ended. No definitions, no properties. One row for each traversal, an entry of each list for a node.

create table past_graph (
    stack_id uuid not null,
    traversal integer not null,
    ids integer[] not null default '{}',
    names text[] not null default '{}',
    types text[] not null default '{}',
    operations text[] not null default '{}',
    directions text[] not null default '{}',
    states text[] not null default '{}',
    phases text[] not null default '{}',
    reasons text[] not null default '{}',
    requirers text[] not null default '{}', -- the nodes that waited for it: {1,2}
    primary key (stack_id, traversal)
);
