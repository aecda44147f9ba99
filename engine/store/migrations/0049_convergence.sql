-- Stacks with a convergence policy are observed at intervals, without a request.
alter table observation_schedule
    alter column requested_at drop not null,
    alter column requested_at drop default;
comment on column observation_schedule.next_at is
    'due then: epoch if it was requested; while it is observed: end of the lease; null: never';
comment on column observation_schedule.requested_at is
    'last request; later than observed_at: it is still due; null: only a policy has scheduled it';
-- A claim steps from one project to the next.
drop index observation_due;
create index observation_due on observation_schedule (project, next_at) where next_at is not null;
