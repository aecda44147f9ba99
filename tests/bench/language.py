"""What it costs to parse, validate and plan a large template, beside parsing alone.

This part measures the language in this process: there is no request and no database.
"""

import gc
import json
import random
import time
import tracemalloc
from collections.abc import Callable
from itertools import count
from uuid import UUID

import yaml

from engine.hot.definition.stack import StackDefinition, define_stack
from engine.hot.environment.environment import parse_environment
from engine.hot.syntax.document import DocumentLimits, read_document
from engine.hot.template.template import parse_template
from engine.plan.passes import plan
from engine.types.registry import built_in
from engine.words import ResourceId
from tests.bench.run import Run

#: More than the quotas allow, for templates of 10,000 resources.
LIMITS = DocumentLimits(max_bytes=16_000_000, max_nodes=4_000_000)
REGISTRY = built_in(random.Random(0))
HEAD = """heat_template_version: 2021-04-16
parameters:
  name: {type: string, default: web}
  size: {type: number, default: 3}
  zones: {type: comma_delimited_list, default: "a,b,c"}
conditions:
  large: {equals: [{get_param: size}, 3]}
resources:
"""


def template_text(resources: int) -> str:
    """A template in YAML, with five functions in each resource; most read the one before."""
    return HEAD + "".join(map(_resource, range(resources)))


def _resource(n: int) -> str:
    before = f"get_attr: [r{n - 1}, output]" if n % 10 else "get_param: [zones, 1]"
    return f"""  r{n}:
    type: OS::Heat::TestResource
    properties:
      value:
        str_replace:
          template: "$name-{n}.example.org"
          params: {{$name: {{get_param: name}}}}
      wait_secs: {{if: [large, 0, 1]}}
    metadata:
      all: {{list_join: [",", [a, x, y]]}}
      before: {{{before}}}
"""


def define_template(text: str) -> StackDefinition:
    return define_stack(
        template=parse_template(read_document(text, "template", LIMITS)),
        environment=parse_environment({}),
        parameters={},
        files={},
        pseudo={"OS::stack_name": "s", "OS::stack_id": "i", "OS::project_id": "p"},
        types=REGISTRY.schemas(),
        check_properties=REGISTRY.check_properties,
    )


def plan_template(text: str) -> None:
    numbers = count()
    resources = define_template(text).resources
    result = plan(resources, (), lambda *_: (), lambda: ResourceId(UUID(int=next(numbers))))
    assert len(result.nodes) == len(resources)


async def language(run: Run) -> None:
    for size in run.sizes:
        yaml_text = template_text(size)
        json_text = json.dumps(yaml.load(yaml_text, yaml.CSafeLoader), default=str)
        definition_bytes = memory(yaml_text) / size
        for _ in range(run.rounds_of(size)):
            for case, work, text in (
                ("YAML", plan_template, yaml_text),
                ("YAML, parsed only", parse_yaml, yaml_text),
                ("JSON", plan_template, json_text),
                ("JSON, parsed only", json.loads, json_text),
            ):
                seconds = cpu_seconds(work, text)
                run.add("language", case, size, server_cpu=seconds / size * 1e6, seconds=seconds)
        run.add("language", "YAML", size, bytes=definition_bytes)


def parse_yaml(text: str) -> None:
    yaml.load(text, yaml.CSafeLoader)


def cpu_seconds(work: Callable[[str], object], text: str) -> float:
    gc.collect()
    started = time.process_time()
    work(text)
    return time.process_time() - started


def memory(text: str) -> int:
    """Bytes of a definition."""
    gc.collect()
    tracemalloc.start()
    definition = define_template(text)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert definition.resources
    return used
