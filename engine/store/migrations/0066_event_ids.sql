-- Events are found by the sequence number in their ID; those of earlier versions, whose ID is random, among
-- the events of their stack.
drop index if exists event_by_own_id;
