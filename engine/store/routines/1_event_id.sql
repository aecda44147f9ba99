-- The ID of an event: a UUID of version 8, of which the last 60 bits are the sequence number in its stack
-- and 60 others are random. So an event is found by its ID in the primary key, and needs no index of
-- random values, each of which PostgreSQL would write to another page (engine/store/stacks/events.py).
create or replace function new_event_id(p_sequence bigint) returns uuid
language sql volatile as $$
    select (overlay(substr(gen_random_uuid()::text, 1, 19) placing '8' from 15 for 1) || '8'
            || lpad(to_hex(p_sequence), 15, '0'))::uuid
$$;
