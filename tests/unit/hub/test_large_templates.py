"""The operator can raise the limits of large templates, with settings that belong together."""

import orjson
import pytest

from engine.errors import Invalid
from engine.hot.syntax.document import read_document
from engine.hot.template.template import read_template
from hub.program.wiring import make_limits
from hub.settings.settings import load_settings

MANY = 50_000
#: All settings for stacks with so many resources.
RAISED = {"quotas.resources_per_stack": MANY, "quotas.template_bytes": 8_388_608}


def text(count: int, **more: object) -> str:
    one = {"type": "OS::Heat::TestResource", "properties": {"value": "x", "wait_secs": 0}, **more}
    resources = {f"r{number}": one for number in range(count)}
    return orjson.dumps({"heat_template_version": "2018-08-31", "resources": resources}).decode()


def test_a_template_within_resources_per_stack_is_parsed() -> None:
    limits = make_limits(load_settings(None, RAISED, environment={})).source
    read = read_template(read_document(text(MANY), "template", limits))
    assert len(read.resources) == MANY


@pytest.mark.parametrize(
    ("settings", "sent", "named"),
    [
        ({}, text(MANY), "[quotas] template_bytes"),
        ({"quotas.template_bytes": 8_388_608}, text(MANY), "[quotas] resources_per_stack"),
        ({}, '{"a": ' * 70 + "1" + "}" * 70, "[quotas] document_depth"),
    ],
    ids=["bytes", "values", "depth"],
)
def test_an_error_names_the_setting(settings: dict[str, int], sent: str, named: str) -> None:
    limits = make_limits(load_settings(None, settings, environment={})).source
    with pytest.raises(Invalid) as caught:
        read_document(sent, "template", limits)
    assert named in caught.value.findings[0].remedy


def test_a_project_can_have_its_own_limits() -> None:
    own = {"quotas.projects.big.resources_per_stack": MANY}
    limits = make_limits(load_settings(None, own, environment={}))
    assert limits.for_project("big").source.max_nodes == 20 * MANY
    assert limits.for_project("small").source.max_nodes == 200_000
