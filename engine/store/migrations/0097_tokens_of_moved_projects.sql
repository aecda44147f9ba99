-- A project that has left the cell gets no new token in it, and none of its tokens is revoked there (ADR 18): the other cell
-- has copies of them.
create trigger refuse_moved_project before insert on token
    for each row execute function refuse_moved_project();
create trigger refuse_moved_project_revoked before update of revoked_at on token
    for each row when (new.revoked_at is distinct from old.revoked_at)
    execute function refuse_moved_project();
