-- Views and functions of earlier versions that have other names now.

drop view if exists event_told, hook_now, resource_now, stack_now, token_now cascade;
drop function if exists forget_nodes;
drop function if exists left_behind;
drop function if exists leave_behind;
drop function if exists projects_after;
drop function if exists forget_credentials;
drop function if exists working_time;
drop function if exists working_time_over_at;
drop function if exists update_clock;
