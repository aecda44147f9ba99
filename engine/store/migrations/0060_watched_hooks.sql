-- Hooks with `watch`: what they show is observed while they wait (engine/work/hook_watch.py).
alter table hook
    add column watched_at timestamptz;           -- start of the last observation for it; null: none
create index hook_watched on hook (coalesce(watched_at, opened_at))
    where state = 'waiting' and rule ->> 'watch' = 'true';
