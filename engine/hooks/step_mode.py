"""How a change goes on behind an answer, through the stacks that it goes through."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.hooks.rule import Rule
from engine.words import Decision, How, Pace, word_of

#: A traversal's pace before -> after; what is not there stays as it is.
Paces = Mapping[Pace | None, Pace | None]


def _nobody(rule: Rule) -> bool:
    return False


def _stepped(rule: Rule) -> bool:
    return rule.stepped


def _passable(rule: Rule) -> bool:
    return rule.passable


@dataclass(frozen=True, slots=True)
class Course:
    """here: of the stack that was answered in. inside, around: of stacks inside of it and around.

    lets_go: which other hooks go on, here and inside; by what decision of whoever answered.
    """

    here: Paces = field(default_factory=dict)
    inside: Paces = field(default_factory=dict)
    around: Paces = field(default_factory=dict)
    lets_go: Callable[[Rule], bool] = _nobody
    decision: Decision = Decision.CONTINUE

    def at(self, level: int) -> Paces:
        """level: 0 here, less around it, more inside."""
        return self.here if level == 0 else self.inside if level > 0 else self.around


#: Whoever comes to the end of a stack inside steps on in the one around it.
STEPS: Paces = {None: Pace.STEP}
STEPS_NO_MORE: Paces = {Pace.STEP: None}
AS_RULES_SAY: Paces = {Pace.STEP: None, Pace.RUN: None}
RUNS: Paces = {None: Pace.RUN, Pace.STEP: Pace.RUN}

STAYS = Course()
#: Somebody goes on from where stepping held: the rules alone hold again.
NO_MORE = Course(here=AS_RULES_SAY, around=STEPS_NO_MORE)
#: Run to a place: whatever waits for who debugs goes on.
ON = Course(here=AS_RULES_SAY, inside=AS_RULES_SAY, lets_go=_passable)
_STEP = Course(here={None: Pace.STEP, Pace.RUN: Pace.STEP}, around=STEPS)
COURSES: Mapping[str, Course] = {
    word_of(Decision.STEP, How.OVER): _STEP,
    word_of(Decision.STEP, How.INTO): _STEP,
    word_of(Decision.STEP, How.OUT): Course(
        here=AS_RULES_SAY, inside=STEPS_NO_MORE, around=STEPS, lets_go=_stepped
    ),
    Decision.RUN: Course(
        here=RUNS, inside=RUNS, around=STEPS_NO_MORE, lets_go=_passable, decision=Decision.RUN
    ),
}


def course_after(word: str, rule: Rule) -> Course:
    """What follows from an answer to a hook of this rule. word: what is written down of it."""
    return COURSES.get(word, NO_MORE if rule.stepped else STAYS)


def goes_through(word: str, *, stepped: bool) -> bool:
    """Whether an answer concerns more of the tree than the stack of its hook."""
    return stepped or word in COURSES
