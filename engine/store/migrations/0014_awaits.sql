-- Operations that wait for signals that are sent to another resource.

alter table node
    add column awaits uuid;                          -- the resource; null: its own
