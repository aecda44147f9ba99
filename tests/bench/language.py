"""What reading, checking and planning a large template take, beside what bare readers take."""

import gc
import json
import random
import time
import tracemalloc
from collections.abc import Callable
from itertools import count
from statistics import median
from uuid import UUID

import yaml

from engine.hot.definition.stack import StackDefinition, define_stack
from engine.hot.environment.environment import parse_environment
from engine.hot.syntax.document import DocumentLimits, read_document
from engine.hot.template.template import parse_template
from engine.plan.passes import plan
from engine.types.registry import built_in
from engine.words import ResourceId

RUNS = 5
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


def written(resources: int) -> str:
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


def defined(text: str) -> StackDefinition:
    return define_stack(
        template=parse_template(read_document(text, "template", LIMITS)),
        environment=parse_environment({}),
        parameters={},
        files={},
        pseudo={"OS::stack_name": "s", "OS::stack_id": "i", "OS::project_id": "p"},
        types=REGISTRY.schemas(),
        check_properties=REGISTRY.check_properties,
    )


def planned(text: str) -> None:
    numbers = count()
    wanted = defined(text).resources
    made = plan(wanted, (), lambda *_: (), lambda: ResourceId(UUID(int=next(numbers))))
    assert len(made.nodes) == len(wanted)


def templates() -> None:
    print("a template with 5 functions in each resource, read, checked and planned")
    print(
        "  resources    bytes      YAML     (bare)     JSON    (bare)   for each   memory of each"
    )
    rates: list[float] = []
    for resources in (1_000, 10_000):
        text = written(resources)
        as_json = json.dumps(yaml.load(text, yaml.CSafeLoader), default=str)
        whole = took(planned, text)
        others = (
            took(read_bare, text),
            took(planned, as_json),
            took(json.loads, as_json),
        )
        shown = "".join(f"{one * 1000:>8.1f} ms" for one in (whole, *others))
        each = whole / resources * 1_000_000
        rates.append(each)
        kept = memory(text) / resources
        print(f"  {resources:>9,}{len(text):>11,}{shown}{each:>8.0f} µs{kept:>10,.0f} B")
    print(f"  each of 10,000 takes {rates[1] / rates[0]:.2f} times what each of 1,000 does\n")


def read_bare(text: str) -> None:
    yaml.load(text, yaml.CSafeLoader)


def took(work: Callable[[str], object], text: str) -> float:
    """The median, in seconds of processor time: other programs are not measured."""
    times = []
    for _ in range(RUNS):
        gc.collect()
        began = time.process_time()
        work(text)
        times.append(time.process_time() - began)
    return median(times)


def memory(text: str) -> int:
    """What a definition keeps, in bytes."""
    gc.collect()
    tracemalloc.start()
    kept = defined(text)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept.resources
    return used
