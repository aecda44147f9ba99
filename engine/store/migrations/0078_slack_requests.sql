-- The signatures of requests from Slack that were accepted in the last minutes, so that none is accepted twice.
create table slack_request (
    signature bytea primary key,
    received_at timestamptz not null
);
create index slack_request_received on slack_request (received_at);
