-- Who signed in with OpenID Connect: the issuer, a space, and the subject. Null: a token or password of Headgate.
alter table token add column subject text;
create index token_by_subject on token (subject, created_at) where subject is not null;
