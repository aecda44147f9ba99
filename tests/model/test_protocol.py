"""Every invariant in every state of small scenarios."""

import pytest

from tests.model import nested, scenarios, tree_scenarios
from tests.model.explore import AnyScenario, explore_once


@pytest.mark.parametrize(
    "scenario",
    [*scenarios.ALL, *nested.ALL, *tree_scenarios.ALL],
    ids=lambda scenario: scenario.name,
)
def test_every_rule_holds_except_known_violations(scenario: AnyScenario) -> None:
    exploration = explore_once(scenario)
    print(
        f"{scenario.name}: {exploration.states} states, {exploration.transitions} transitions, "
        f"{exploration.terminal_states} terminal states"
    )
    unexpected = [
        str(counterexample)
        for invariant, counterexample in exploration.counterexamples.items()
        if invariant not in scenario.known_violations
    ]
    assert not unexpected, "\n\n".join(unexpected)
    no_longer_violated = scenario.known_violations - exploration.counterexamples.keys()
    assert not no_longer_violated, (
        f"these invariants hold; remove them from `known_violations`: {sorted(no_longer_violated)}"
    )
    assert exploration.terminal_states
