-- A token or password with its remaining validity, the [auth] mode in which it was created, and whether
-- it is accepted now. Columns are named, so that columns of later versions do not change the view.

drop view if exists token_details cascade;

create view token_details as
select t.id, t.project, t.name, t.roles, t.kind, t.hash, t.created_by, t.created_at, t.expires_at,
       t.used_at, t.revoked_at, t.revoked_by,
       extract(epoch from t.expires_at - now())::float8 as seconds_left,
       coalesce(m.mode, 'tokens') as mode,
       t.revoked_at is null and (t.expires_at is null or t.expires_at > now()) as is_valid,
       t.revoked_at is null and (t.expires_at is null or t.expires_at > now())
           and coalesce(m.mode, 'tokens') = 'tokens' as is_accepted,
       t.subject
  from token t left join token_mode m on m.token_id = t.id;
