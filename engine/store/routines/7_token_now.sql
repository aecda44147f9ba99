-- A token or password with what is derived of it: how long it is valid, where it was made, and whether
-- it is accepted now. Columns by name, so that those of a later version change nothing here.

drop view if exists token_now cascade;

create view token_now as
select t.id, t.project, t.name, t.roles, t.kind, t.hash, t.created_by, t.created_at, t.expires_at,
       t.used_at, t.revoked_at, t.revoked_by,
       extract(epoch from t.expires_at - now())::float8 as seconds_left,
       coalesce(m.mode, 'tokens') as mode,
       t.revoked_at is null and (t.expires_at is null or t.expires_at > now()) as is_valid,
       t.revoked_at is null and (t.expires_at is null or t.expires_at > now())
           and coalesce(m.mode, 'tokens') = 'tokens' as is_accepted
  from token t left join token_mode m on m.token_id = t.id;
