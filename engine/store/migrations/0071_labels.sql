-- Nodes that only workers with a label execute (engine/plan/labels.py).
-- label: null: any worker without labels. In the graph of a traversal with labels, '': the same.
alter table node add column label text;
alter table resource add column label text;     -- of the last operation: the next one runs there, too
alter table traversal add column labelled boolean not null default false; -- some of its nodes have a label
-- Of the workers of a process. '': they execute nodes without a label.
alter table process add column labels text[] not null default '{""}';

-- When nodes with a label are due, as `traversal.wake_at` is for those without.
create table labelled_work (
    stack_id uuid not null,
    traversal integer not null,
    label text not null,
    project text not null,                       -- of the stack; workers serve projects in turn
    wake_at timestamptz,                         -- the earliest wake_at of these nodes
    primary key (stack_id, traversal, label)
) with (fillfactor = 50);
create index labelled_work_due on labelled_work (label, wake_at) where wake_at is not null;
create index labelled_work_turn on labelled_work (label, project, wake_at) where wake_at is not null;
create index node_labelled on node (stack_id, traversal, label, wake_at)
    where label is not null and wake_at is not null;
