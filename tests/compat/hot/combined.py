"""Snippets with calls inside calls, made by Hypothesis; recorded, as another one makes others."""

import json
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

HOW_MANY = 150

words = st.sampled_from(["a", "b", "ab", "", "x y", "é", "a,b", "$v"])
leaves = st.one_of(
    words,
    st.integers(-2, 3),
    st.booleans(),
    st.none(),
    st.sampled_from(
        [
            {"get_param": "text"},
            {"get_param": "items"},
            {"get_param": ["map", "list", 0]},
            {"get_param": "number"},
            {"get_attr": ["other", "value", "list"]},
            {"get_attr": ["other", "value", "text"]},
            {"get_attr": ["other", "value", "nope"]},
            {"get_attr": ["thing", "output"]},
        ]
    ),
)
texts = st.one_of(
    words, st.sampled_from([{"get_param": "text"}, {"get_attr": ["other", "value", "text"]}])
)
lists = st.one_of(
    st.lists(leaves, max_size=3),
    st.sampled_from([{"get_param": "items"}, {"get_attr": ["other", "value", "list"]}]),
)
maps = st.one_of(
    st.dictionaries(st.sampled_from(["a", "b", "k"]), leaves, max_size=2),
    st.sampled_from([{"get_attr": ["other", "value", "inner"]}]),
)


def calls(inside: Any) -> Any:
    def of(name: str, args: Any) -> Any:
        return st.builds(lambda made: {name: made}, args)

    branch = st.sampled_from(["yes_it_is", "no_it_is_not", {"not": "yes_it_is"}, True])
    any_list = st.one_of(lists, st.lists(inside, max_size=2))
    return st.one_of(
        of("list_join", st.tuples(words, any_list).map(list)),
        of("list_concat", st.lists(any_list, min_size=1, max_size=3)),
        of("list_concat_unique", st.lists(any_list, min_size=1, max_size=3)),
        of("map_merge", st.lists(maps, min_size=1, max_size=2)),
        of("filter", st.tuples(lists, any_list).map(list)),
        of("contains", st.tuples(leaves, any_list).map(list)),
        of("str_split", st.tuples(st.sampled_from([",", "a"]), texts).map(list)),
        of("digest", st.tuples(st.sampled_from(["md5", "sha256"]), texts).map(list)),
        of("if", st.tuples(branch, inside, inside).map(list)),
        of("if", st.tuples(branch, inside).map(list)),
        of(
            "str_replace",
            st.fixed_dictionaries(
                {
                    "template": texts,
                    "params": st.dictionaries(st.sampled_from(["a", "b", "$v"]), inside),
                }
            ),
        ),
        of(
            "repeat",
            st.fixed_dictionaries(
                {
                    "template": st.one_of(st.just("<%x%>"), st.just({"k%x%": ["%x%"]}), inside),
                    "for_each": st.fixed_dictionaries({"%x%": lists}),
                }
            ),
        ),
        st.lists(inside, max_size=3),
        st.dictionaries(st.sampled_from(["p", "q"]), inside, max_size=2),
    )


snippets = calls(st.recursive(leaves, calls, max_leaves=6))


def made_snippets() -> list[Any]:
    made: list[Any] = []

    @settings(
        max_examples=HOW_MANY,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(snippets)
    def collect(snippet: Any) -> None:
        if all(json.dumps(one) != json.dumps(snippet) for one in made):
            made.append(snippet)

    collect()
    return made
