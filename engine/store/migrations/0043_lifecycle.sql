-- Of the definition that was applied last: {"prevent_destroy": true, "replace_when": {text of an
-- expression: digest of its value}}. Null: the template has no lifecycle for the resource.
alter table resource add column lifecycle jsonb;
