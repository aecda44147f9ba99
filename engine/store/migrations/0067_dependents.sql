-- The dependents of a resource are found by its ID. No list of pending entries: a read would have to search it.
create index resource_by_requirement on resource using gin (requires) with (fastupdate = off)
    where requires <> '{}';
