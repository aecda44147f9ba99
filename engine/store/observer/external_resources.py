"""Parts of statements: which resources of a stack have physical resources that the stack does not
own, because they have external_id in the template, or are entries of the section `data`."""

#: Whether that is so for a resource `r`. The statement has the part `external_names`.
IS_EXTERNAL = """(
    starts_with(r.name, 'data.')
    or (r.stack_id, split_part(r.name, '[', 1)) in (select stack_id, name from external)
)"""


def external_names(stacks: str) -> str:
    """The part `external`: names of resources that have external_id in the template of their stack.
    stacks: a query of IDs. A template has the definitions of all resources of its stack, so it is
    read once and not for each of them."""
    return f"""external as materialized (
    select s.id as stack_id, d.name #>> '{{}}' as name
      from (select distinct stack_id from ({stacks}) o (stack_id)) o
     cross join lateral (select id, version from stack where id = o.stack_id offset 0) s
     cross join lateral (select template from template
                          where stack_id = s.id and version = s.version offset 0) t
     cross join lateral jsonb_path_query(
                t.template, '$.resources.keyvalue() ? (@.value.external_id != null).key',
                silent => true) d (name)
)"""  # noqa: S608 - of constants
