-- A project that has left the cell gets no new row in it (ADR 16): the move would delete the row with the others,
-- although its request has succeeded. The share lock lets a move begin to take rows only after the transaction
-- has ended. Stacks are refused by accept_change; rows of stacks, by the lock of their stack.
-- Event sinks are not refused: publish_outbox has locked outbox_cursor, which a move locks before it takes rows, so a
-- sink is taken with the others. An error would stop the publication of the events of all projects.
create function refuse_moved_project() returns trigger language plpgsql as $$
declare
    v_move text;
begin
    select c.move_state into v_move from cell_project c where c.project = new.project for share;
    if v_move in ('taken', 'moved') then
        raise exception 'the project "%" has moved to another cell', new.project using errcode = 'HG001';
    end if;
    return new;
end;
$$;
create trigger refuse_moved_project before insert on software_config
    for each row execute function refuse_moved_project();
create trigger refuse_moved_project before insert on software_deployment
    for each row execute function refuse_moved_project();
create trigger refuse_moved_project before insert on subscription
    for each row when (new.origin <> 'environment') execute function refuse_moved_project();
create trigger refuse_moved_project before insert on trust
    for each row execute function refuse_moved_project();
create trigger refuse_moved_project before insert on observation_credential
    for each row execute function refuse_moved_project();
