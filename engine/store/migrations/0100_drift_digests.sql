-- Whether drift has changed whose values are masked or shortened (engine/hooks/drift_digests.py).
alter table observation
    add column drift_digest text,                -- keyed digest of all differences as they are; null: there are none, or
                                                 -- a process of an earlier release has written the row
    add column digested_at timestamptz,          -- observed_at when drift_digest was written; another time: a process of an
                                                 -- earlier release has written the row, and drift_digest is out of date
    add column known_digest text,                -- drift_digest of known_state
    add column watched_hook uuid,                -- the hook with `watch` that shows drift of the resource, and
    add column watched_digest text;              -- drift_digest of that; another hook: a process of an earlier
                                                 -- release has opened it
comment on column observation.reported is
    'the last event: {name, type, physical_id, state, differences, digest: drift_digest, unrepaired: why}; null: none';
alter table drift_hook
    add column drift_digest text;                -- as in observation; null: a process of an earlier release has opened the
                                                 -- hook
