"""Groups reach their wanted state in batches, from any state."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.errors import Invalid, LimitReached
from engine.hot.definition.stack import define_stack
from engine.hot.environment.environment import parse_environment
from engine.hot.template.template import parse_template
from engine.types.contract import Done, ReconcileNested, RunNested
from engine.types.group_size import Adjustment, adjusted_size
from engine.types.groups.auto_scaling import AutoScalingGroup
from engine.types.groups.resource_group import ResourceGroup
from tests.unit.hot.hot_support import PSEUDO
from tests.unit.types.calls import registry
from tests.unit.types.nested_stack import NestedStack

GROUP, SCALING = ResourceGroup(), AutoScalingGroup()
OLD = {"type": "T", "properties": {"value": "old"}}
NEW = {"type": "T", "properties": {"value": "new"}}
SIZES = st.integers(0, 7)
#: What there is: for each member whether it is up to date, and whether it failed.
MEMBERS = st.lists(st.tuples(st.booleans(), st.integers(0, 5).map(lambda n: n == 0)), max_size=7)
POLICIES = st.fixed_dictionaries(
    {"max_batch_size": st.integers(1, 5), "min_in_service": st.integers(0, 8)}
)


def initial_state(members: list[tuple[bool, bool]], names: str) -> NestedStack:
    bodies = {names[place]: NEW if new else OLD for place, (new, _) in enumerate(members)}
    failed = tuple(names[place] for place, (_, broken) in enumerate(members) if broken)
    return NestedStack().members(bodies, failed)


def check_batches(
    inside: NestedStack, before: Mapping[str, Any], target: int, policy: Mapping[str, int]
) -> None:
    """No batch touches more than the policy says, or leaves fewer in service than it can."""
    for nest in inside.goals:
        assert isinstance(nest, RunNested)
        assert isinstance(nest.goal, ReconcileNested)
        assert nest.goal.template is not None
        after = nest.goal.template["resources"]
        if nest.step.startswith("batch"):
            touched = [name for name in after if before.get(name) != after[name]]
            untouched = [name for name in after if before.get(name) == after[name]]
            assert len(touched) <= policy["max_batch_size"]
            min_size = min(policy["min_in_service"], target, len(before))
            assert len(untouched) >= min_size
        before = after


@given(MEMBERS, SIZES, POLICIES)
def test_a_resource_group_reaches_its_wanted_state(
    members: list[tuple[bool, bool]], count: int, policy: dict[str, int]
) -> None:
    inside = initial_state(members, "0123456")
    before = inside.bodies
    sound = not any(broken for _, broken in members)
    done = inside.run(
        GROUP, "update", {"count": count, "resource_def": NEW},
        update_policy={"rolling_update": policy},
    )  # fmt: skip
    assert isinstance(done, Done)
    assert inside.bodies == {str(number): NEW for number in range(count)}
    assert len(inside.goals) <= len(members) + count + 4
    if sound:
        check_batches(inside, before, count, policy)


@given(MEMBERS, SIZES, POLICIES)
def test_a_scaling_group_reaches_its_wanted_state(
    members: list[tuple[bool, bool]], size: int, policy: dict[str, int]
) -> None:
    inside = initial_state(members, "abcdefg")
    before = inside.bodies
    sound = not any(broken for _, broken in members)
    properties = {"resource": NEW, "min_size": 0, "max_size": 9, "rolling_updates": policy}
    done = inside.run(SCALING, "update", properties, adjusted={"size": size})
    assert isinstance(done, Done)
    assert len(inside.bodies) == size
    assert all(body == NEW for body in inside.bodies.values())
    assert len(inside.goals) <= 2 * (len(members) + size) + 4
    if sound:
        check_batches(inside, before, size, policy)


@given(st.integers(0, 7), st.lists(st.integers(0, 6), unique=True, max_size=3))
def test_removed_names_are_never_reused(count: int, named: list[int]) -> None:
    inside = NestedStack()
    inside.run(GROUP, "create", {"count": 7, "resource_def": OLD})
    removing = [{"resource_list": [*map(str, named)]}]
    inside.run(GROUP, "update", {"count": count, "resource_def": OLD, "removal_policies": removing})
    inside.run(GROUP, "update", {"count": 9, "resource_def": OLD})
    assert len(inside.bodies) == 9
    assert not {*map(str, named)} & {*inside.bodies}


@given(
    st.integers(0, 50), st.sampled_from(Adjustment), st.integers(-300, 300), st.integers(0, 5),
    st.integers(0, 20), st.integers(0, 30),
)  # fmt: skip
def test_an_adjusted_size_stays_within_limits_and_follows_the_adjustment(
    current: int, kind: Adjustment, amount: int, step: int, min_size: int, more: int
) -> None:
    size = adjusted_size(
        current, kind, amount, min_step=step, min_size=min_size, max_size=min_size + more
    )
    assert min_size <= size <= min_size + more
    if kind is not Adjustment.EXACT and min_size <= current <= min_size + more:
        assert (size - current) * amount >= 0


WORDS = st.sampled_from(["T", "0", "%index%", "OS::Heat::TestResource", "value", "nope", ""])
KEYS = st.sampled_from([
    "type", "properties", "metadata", "depends_on", "value", "count", "resource_list",
    "get_param", "get_attr", "get_resource", "get_file", "if",
])  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10**9) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
BODIES = st.fixed_dictionaries(
    {"type": WORDS}, optional={"properties": JSON, "metadata": JSON, "depends_on": JSON}
)
GIVEN = {
    "OS::Heat::ResourceGroup": {
        "resource_def": BODIES | JSON, "count": JSON, "index_var": WORDS | JSON,
        "removal_policies": JSON,
    },
    "OS::Heat::ResourceChain": {
        "resources": st.lists(WORDS) | JSON, "resource_properties": JSON, "concurrent": JSON,
    },
    "OS::Heat::AutoScalingGroup": {
        "resource": BODIES | JSON, "min_size": JSON, "max_size": JSON,
        "desired_capacity": JSON, "rolling_updates": JSON,
    },
}  # fmt: skip
TEMPLATES = st.sampled_from(sorted(GIVEN)).flatmap(
    lambda name: st.fixed_dictionaries({}, optional=GIVEN[name]).flatmap(
        lambda properties: (JSON | st.just(properties)).map(
            lambda given: {"type": name, "properties": given}
        )
    )
)


KNOWN = registry()


@given(TEMPLATES, JSON)
def test_every_group_template_is_defined_or_refused_with_a_place(group: Any, path: Any) -> None:
    written = {
        "heat_template_version": "2018-08-31",
        "parameters": {"p": {"type": "json", "default": {"a": 1}}},
        "resources": {"x": {"type": "OS::Heat::TestResource"}, "g": group},
        "outputs": {"o": {"value": {"get_attr": ["g", *(path if isinstance(path, list) else [])]}}},
    }
    try:
        define_stack(
            template=parse_template(written), environment=parse_environment({}), parameters={},
            files={}, pseudo=PSEUDO, types=KNOWN.schemas(),
            check_properties=KNOWN.check_properties,
        )  # fmt: skip
    except LimitReached:
        return
    except Invalid as error:
        assert all(one.reason for one in error.findings)
