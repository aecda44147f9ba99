"""How an answer changes the step modes of the traversals in a stack tree."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.hooks.rule import Rule
from engine.words import Decision, StepKind, StepMode, word_of

#: A traversal's step mode before -> after; others stay.
StepModeMap = Mapping[StepMode | None, StepMode | None]


def _none(rule: Rule) -> bool:
    return False


def _is_stepped(rule: Rule) -> bool:
    return rule.stepped


def _passable(rule: Rule) -> bool:
    return rule.passable


@dataclass(frozen=True, slots=True)
class StepModeChange:
    """A change of step modes. own: of the answered hook's stack. nested: of its nested stacks.
    parents: of its parent stacks.

    resumes: whether another waiting hook, of the stack or its nested stacks, continues with
    `decision`.
    """

    own: StepModeMap = field(default_factory=dict)
    nested: StepModeMap = field(default_factory=dict)
    parents: StepModeMap = field(default_factory=dict)
    resumes: Callable[[Rule], bool] = _none
    decision: Decision = Decision.CONTINUE

    def at(self, level: int) -> StepModeMap:
        """Return the changes on a level: 0: the hook's stack; below 0: parents; above 0: nested."""
        return self.own if level == 0 else self.nested if level > 0 else self.parents

    def ends_stepping(self, level: int) -> bool:
        """Return whether traversals on a level do not step afterwards; with nested ones, also those
        that have not begun."""
        return self.at(level).get(StepMode.STEP, StepMode.STEP) is not StepMode.STEP


TO_STEP: StepModeMap = {None: StepMode.STEP, StepMode.RUN: StepMode.STEP}
STEP_TO_RULES: StepModeMap = {StepMode.STEP: None}
TO_RULES: StepModeMap = {StepMode.STEP: None, StepMode.RUN: None}
TO_RUN: StepModeMap = {None: StepMode.RUN, StepMode.STEP: StepMode.RUN}

UNCHANGED = StepModeChange()
#: An answer at a hook of stepping: only rules block from then on.
END_STEPPING = StepModeChange(own=TO_RULES, parents=STEP_TO_RULES)
#: Run to a resource: hooks of stepping and of debugging breakpoints continue.
RUN_TO = StepModeChange(own=TO_RULES, nested=TO_RULES, resumes=_passable)
#: At the end of a nested stack, stepping continues in its parent.
_STEP = StepModeChange(own=TO_STEP, parents=TO_STEP)
STEP_MODE_CHANGES: Mapping[str, StepModeChange] = {
    word_of(Decision.STEP, StepKind.OVER): _STEP,
    word_of(Decision.STEP, StepKind.INTO): _STEP,
    word_of(Decision.STEP, StepKind.OUT): StepModeChange(
        own=TO_RULES, nested=STEP_TO_RULES, parents=TO_STEP, resumes=_is_stepped
    ),
    Decision.RUN: StepModeChange(
        own=TO_RUN, nested=TO_RUN, parents=STEP_TO_RULES, resumes=_passable, decision=Decision.RUN
    ),
}


def step_mode_change(word: str, rule: Rule) -> StepModeChange:
    """Return the change after an answer to a hook of this rule. word: the recorded decision."""
    return STEP_MODE_CHANGES.get(word, END_STEPPING if rule.stepped else UNCHANGED)


def affects_tree(word: str, *, stepped: bool) -> bool:
    """Return whether an answer concerns other stacks of the tree than the hook's."""
    return stepped or word in STEP_MODE_CHANGES
