-- What was observed before the state of a resource became unknown, and when providers were really asked.
alter table observation
    add column known_state text,                 -- of state unknown: the drift that was observed last; null: none
    add column known_differences jsonb,
    add column known_reason text,
    add column known_found_by text,
    add column known_since timestamptz,          -- first observed in known_state
    add column known_until timestamptz;          -- since of the unknown state; another time: a process of the
                                                 -- previous release has written the row, and these are out of date
comment on column observation.observed_at is
    'last written; of state unknown: when the provider was asked last before that';
alter table observation_schedule
    add column polled_at timestamptz;             -- start of the last observation in which a provider was asked;
                                                 -- -infinity: none; null: as observed_at
