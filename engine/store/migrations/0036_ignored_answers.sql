-- The last answer by message to the hook of a notification that did not count: why, and its decision
-- and reason. Apart from error and answer, which belong to the attempts: such an answer may come
-- before the attempt is settled.
alter table delivery add column ignored text, add column ignored_answer text;
