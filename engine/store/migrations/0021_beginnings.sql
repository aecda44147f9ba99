-- Where in a stack's events its traversals begin.

create index event_started on event (stack_id, sequence)
    where type like 'headgate.stack.%.started';
