alter table observation
    add column if not exists found_by text;      -- what caused the observation; null: before schema 64
