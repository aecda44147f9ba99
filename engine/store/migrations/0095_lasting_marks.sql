-- A converge's mark lasts until an operation on the resource begins (marked_at; before: until the row is written). Marks
-- of rows that were written since are of earlier converges.
update resource set marked_at = null where marked_at is distinct from updated_at and marked_at is not null;
