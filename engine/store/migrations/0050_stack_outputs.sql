-- Outputs of other stacks that the version reads: [[stack, output, id of the stack, secret, value]], and the IDs of
-- these stacks.
alter table template add column stack_outputs jsonb not null default '[]';
alter table template add column sources uuid[] not null default '{}';
create index template_by_source on template using gin (sources) where sources <> '{}';
