-- A converge marks resources with drift as failed before operations on them begin. Until then, their rows are as applied.
alter table resource
    add column marked_at timestamptz;            -- updated_at when a converge marked it last; null: never
