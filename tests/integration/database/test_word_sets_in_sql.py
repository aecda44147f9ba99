"""Lists of words in SQL, such as ``state in ('parked', 'running')``, are sets that Python defines."""

import re
from collections.abc import Iterable, Iterator, Mapping

from engine import words
from engine.node.machine import decide
from engine.node.node import ENDED, InvalidInput, Node, Superseded
from engine.plan.drift import UNCHANGING
from engine.store.maintenance.project_moves import LEFT
from engine.store.schema.routine_versions import routines
from engine.words import Action, Decision, HookState, Operation, Phase, ResourceAction, State
from tests.integration.database.test_statements import FOUND

TEXTS = FOUND | {file.name: file.text for file in routines()}
LIST = re.compile(
    r"(?:\b(?!not\b)(?P<column>\w+)|->> *'(?P<key>\w+)') +(?:not +)?"
    r"(?:in *\(|(?:=|<>) *(?:any|all) *\(array *\[) *(?P<words>'[^']*'(?:\s*,\s*'[^']*')*) *[)\]]"
)

ANY_LIST = re.compile(r"\b(?:in *\(|array *\[) *'[^']*'\s*,")
#: Statements with a list that is compared with an expression, or with nothing.
OTHER_LISTS = {
    "engine.store.stacks.templates.READ_WRITTEN_TYPES",
    "3_stack_page.sql",
}

#: States of a node that a worker has, or that is due or parked.
ACTIVE = frozenset(State) - ENDED - {State.WAITING}
#: States in which an operation continues when its traversal ends: the machine refuses to end the node.
CALLED = frozenset(
    state
    for state in ACTIVE
    if isinstance(decide(Node(Operation.UPDATE, state, Phase.EXECUTE), Superseded()), InvalidInput)
)
#: Actions that apply a template: all but a delete and the in-place actions.
APPLYING = frozenset(Action) - {
    Action.DELETE,
    *map(Action, map(str.upper, words.IN_PLACE_OPERATIONS)),
}
#: Actions after which, if they failed, a resource is observed: that change it, or only read it.
CHANGING = frozenset({ResourceAction.CREATE, ResourceAction.UPDATE})
READING = UNCHANGING
#: The sets, by the names of their columns in SQL.
SETS: Mapping[str, Iterable[frozenset[str]]] = {
    "state": (
        ACTIVE,
        CALLED,
        frozenset({State.DONE, State.FAILED}),  # operations that have ended by themselves
        frozenset(words.UNDER_WAY),
        frozenset(words.PENDING_CONVERGE),
        frozenset({HookState.ANSWERED, HookState.EXPIRED}),
    ),
    "p_state": (ENDED, ACTIVE),
    "p_phase": (frozenset({Phase.EXECUTE, Phase.CONFIRM}),),  # the operation has begun
    "p_operation": (words.GATES,),
    "action": (
        # Resources that are not observed.
        frozenset({ResourceAction.INIT, ResourceAction.SUSPEND, ResourceAction.DELETE}),
        CHANGING | READING,  # resources that are observed after the action failed
        APPLYING,
    ),
    "p_action": (READING,),  # the resource is as whole as before the action
    "operation": (words.GATES, words.CREATING),
    "kind": (
        frozenset(
            words.word_of(one, how)
            for one in frozenset(Decision)
            - {Decision.REJECT, Decision.PROGRESS, Decision.IGNORE}  # approvals
            for how in (words.StepKind if one is Decision.STEP else [words.StepKind.OVER])
        ),
        frozenset({"node", "later"}),  # rows of nodes
    ),
    "move_state": (LEFT, frozenset({words.MoveState.ANNOUNCED, words.MoveState.TAKEN})),
    "v_move": (LEFT,),
    "write": (frozenset({"insert", "leave"}),),  # a replacement has its own row
}


def lists(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    for match in LIST.finditer(text):
        yield match["column"] or match["key"], frozenset(re.findall(r"'([^']*)'", match["words"]))


def unknown(texts: Mapping[str, str]) -> list[tuple[str, str, list[str]]]:
    """Lists that are no set of their column."""
    return [
        (name, column, sorted(found))
        for name, text in texts.items()
        for column, found in lists(text)
        if len(found) > 1 and found not in SETS.get(column, ())
    ]


def test_each_list_of_words_is_a_set_of_its_column() -> None:
    assert unknown(TEXTS) == []


def test_the_column_of_each_list_is_found() -> None:
    other = {
        name
        for name, text in TEXTS.items()
        if len(ANY_LIST.findall(text)) > sum(len(words) > 1 for _, words in lists(text))
    }
    assert other == OTHER_LISTS


def test_each_set_is_in_a_statement() -> None:
    found: dict[str, set[frozenset[str]]] = {column: set() for column in SETS}
    for text in TEXTS.values():
        for column, one in lists(text):
            found.setdefault(column, set()).add(one)
    assert {column: [one for one in every if one not in found[column]]
            for column, every in SETS.items()} == {column: [] for column in SETS}  # fmt: skip


def test_the_ended_states_are_listed_once() -> None:
    assert [name for name, text in TEXTS.items()
            if any(found >= ENDED for _, found in lists(text))] == ["1_node_rules.sql"]  # fmt: skip


def _listed(found: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(found))


def test_a_list_without_one_of_the_words_is_found() -> None:
    for column, every in SETS.items():
        for one in every:
            assert unknown({"all": f"where n.{column} not in ({_listed(one)})"}) == []
            for rest in (one - {word} for word in one):
                if len(rest) > 1 and rest not in every:
                    assert unknown({"in": f"where n.{column} in ({_listed(rest)})"})
                    assert unknown({"any": f"and {column} = any (array[{_listed(rest)}])"})
