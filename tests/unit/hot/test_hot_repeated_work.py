"""Work that is done once for a template, however often its parts are used."""

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from engine.errors import Findings
from engine.hot.environment.environment import Environment, parse_environment
from engine.hot.environment.registry import ResolvedType
from engine.hot.evaluation.conditions import Conditions
from engine.hot.language.versions import VERSIONS
from engine.hot.nested.nested_templates import NestedTemplates, TypeUse
from engine.hot.nested.template_type import TemplateType
from engine.words import Json
from tests.unit.hot.nested_support import template

LENGTH = 2_000


@dataclass
class CountedConditions(dict[str, Json]):
    """Named conditions that count how often each definition is read for its evaluation."""

    content: dict[str, Json]
    reads: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.update(self.content)

    def __getitem__(self, name: str) -> Json:
        self.reads[name] += 1
        return super().__getitem__(name)


@pytest.mark.parametrize(
    ("end", "unknown"),
    [(True, ()), ({"get_param": "p"}, ("p",)), ({"get_param": "gone"}, ())],
    ids=["too long", "unknown value", "without a value"],
)
def test_each_condition_of_a_chain_is_evaluated_once(end: Json, unknown: tuple[str, ...]) -> None:
    """A chain is evaluated from its start until it is too deep, then from the next condition."""
    every = 50  # conditions of a part that ends in the same way
    named = {
        f"c{n}": {"not": f"c{n + 1}"} if n % every or end is True else end for n in range(LENGTH)
    } | {f"c{LENGTH}": True}
    counted = CountedConditions(named)
    version = VERSIONS["2021-04-16"]
    conditions = Conditions(counted, version, {}, Findings(), unknown=frozenset(unknown))
    conditions.decide_all()
    assert max(counted.reads.values()) <= 4, counted.reads.most_common(3)


def open_server(nesting: NestedTemplates, environment: Environment) -> TemplateType | None:
    use = TypeUse("web", "server.yaml", "resources.web", "resources.web.type")
    found = ResolvedType("server.yaml", None)
    return nesting.open_template(found, use, environment, {}, Findings())


def test_stacks_of_a_preview_share_parsed_templates_and_environments() -> None:
    environment = parse_environment({"parameter_defaults": {"a": 1}, "parameters": {"b": 2}})
    nesting = NestedTemplates({"server.yaml": template()})
    first = open_server(nesting, environment)
    assert first is not None
    following = nesting.of_next_stack(dict(nesting.files))
    assert open_server(following, environment) is first
    assert following.resource_count == 0
    other = open_server(following, first.environment)  # of a nested stack
    assert other is not None and other.environment is first.environment
    changed = nesting.of_next_stack({"server.yaml": template(description="another")})
    opened = open_server(replace(changed, path=()), environment)
    assert opened is not None and opened.template.description == "another"
