"""How an answer changes the step modes of the traversals in a stack tree."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.hooks.rule import Rule
from engine.words import Decision, How, Pace, word_of

#: A traversal's step mode before -> after; others stay.
StepModes = Mapping[Pace | None, Pace | None]


def _none(rule: Rule) -> bool:
    return False


def _stepped(rule: Rule) -> bool:
    return rule.stepped


def _passable(rule: Rule) -> bool:
    return rule.passable


@dataclass(frozen=True, slots=True)
class StepModeChange:
    """A change of step modes. here: of the answered hook's stack. inside: of its nested stacks.
    around: of its parent stacks.

    resumes: whether another waiting hook, here or inside, continues with `decision`.
    """

    here: StepModes = field(default_factory=dict)
    inside: StepModes = field(default_factory=dict)
    around: StepModes = field(default_factory=dict)
    resumes: Callable[[Rule], bool] = _none
    decision: Decision = Decision.CONTINUE

    def at(self, level: int) -> StepModes:
        """Return the changes on a level: 0: here; below 0: parents; above 0: nested stacks."""
        return self.here if level == 0 else self.inside if level > 0 else self.around


#: At the end of a nested stack, stepping continues in its parent.
TO_STEP: StepModes = {None: Pace.STEP}
STEP_TO_RULES: StepModes = {Pace.STEP: None}
TO_RULES: StepModes = {Pace.STEP: None, Pace.RUN: None}
TO_RUN: StepModes = {None: Pace.RUN, Pace.STEP: Pace.RUN}

UNCHANGED = StepModeChange()
#: An answer at a hook of stepping: only rules block from then on.
END_STEPPING = StepModeChange(here=TO_RULES, around=STEP_TO_RULES)
#: Run to a resource: hooks of stepping and of debugging breakpoints continue.
ON = StepModeChange(here=TO_RULES, inside=TO_RULES, resumes=_passable)
_STEP = StepModeChange(here={None: Pace.STEP, Pace.RUN: Pace.STEP}, around=TO_STEP)
STEP_MODE_CHANGES: Mapping[str, StepModeChange] = {
    word_of(Decision.STEP, How.OVER): _STEP,
    word_of(Decision.STEP, How.INTO): _STEP,
    word_of(Decision.STEP, How.OUT): StepModeChange(
        here=TO_RULES, inside=STEP_TO_RULES, around=TO_STEP, resumes=_stepped
    ),
    Decision.RUN: StepModeChange(
        here=TO_RUN, inside=TO_RUN, around=STEP_TO_RULES, resumes=_passable, decision=Decision.RUN
    ),
}


def step_mode_change(word: str, rule: Rule) -> StepModeChange:
    """Return the change after an answer to a hook of this rule. word: the recorded decision."""
    return STEP_MODE_CHANGES.get(word, END_STEPPING if rule.stepped else UNCHANGED)


def affects_tree(word: str, *, stepped: bool) -> bool:
    """Return whether an answer concerns other stacks of the tree than the hook's."""
    return stepped or word in STEP_MODE_CHANGES
