"""Fuzzing of the language: only values and findings result, the same each time, within limits.

HEADGATE_FUZZ is the number of seconds for each fuzzer, with new seeds; `make fuzz` sets it. Without
it, each runs a few hundred fixed examples.
"""

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import yaml

from engine.hot.yaql.evaluation import MAX_EXPRESSION_LENGTH
from tests.property.language_fuzz import Chance, Yaql, evaluated, through
from tests.support.cpu_limits import limit_cpu_time, seconds_of_calculations

SECONDS = float(os.environ.get("HEADGATE_FUZZ", "0"))


def chances(tries: int) -> Iterator[random.Random]:
    """A source of randomness for each try."""
    end = time.monotonic() + SECONDS
    seed = random.SystemRandom().randrange(2**40) if SECONDS else 0
    while tries > 0 or time.monotonic() < end:
        yield random.Random(seed)
        seed, tries = seed + 1, tries - 1


def random_template(chance: random.Random) -> None:
    text = json.dumps(Chance(chance).template())
    through(text, parameters={"p0": Chance(chance).value(2)})


PUT_IN = (
    "", "\t", "\n", "[", "]", "{", "}", ":", "- ", "? ", "&a ", "*a", "<<: ", "'", '"', "#",
    "!!int ", "|", "\x00", "\ud800", "0x", "1e999", "%",
)  # fmt: skip


def random_text(chance: random.Random) -> None:
    """YAML, with letters changed, left out or doubled."""
    text = yaml.safe_dump(Chance(chance).template(), default_flow_style=chance.choice([True, None]))
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(text) + 1)
        put = chance.choice([*PUT_IN, text[at : at + chance.randrange(40)]])
        text = text[:at] + put + text[at + chance.randrange(3) :]
    through(text)


def random_environment(chance: random.Random) -> None:
    value = Chance(chance).value
    sections = ["parameters", "parameter_defaults", "resource_registry", "hooks", "event_sinks",
                "encrypted_param_names", "parameter_merge_strategies"]  # fmt: skip
    environment = {one: value() for one in chance.sample(sections, chance.randrange(4))}
    if chance.random() < 0.5:
        names = ["T", "S", "U", "U*", "*", "resources", "base_url"]
        registry = {one: chance.choice(["T", "S", "U", "V*", None, value()]) for one in names}
        environment["resource_registry"] = {
            one: registry[one] for one in chance.sample(names, chance.randrange(5))
        }
    through(json.dumps(Chance(chance).template()), json.dumps(environment))


def expressions(tries: int, most_memory: int = 1_000_000_000) -> None:
    """Evaluate expressions, in a process that may use so many bytes.

    Each may use the CPU time of 200 reference calculations.
    """
    resource.setrlimit(resource.RLIMIT_AS, (most_memory, most_memory))
    most_seconds = 0.0
    for number, chance in enumerate(chances(tries)):
        if number % 50 == 0:
            most_seconds = seconds_of_calculations(200)
        limit_cpu_time(most_seconds)
        text = Yaql(chance).expression(chance.choice([2, 3, 4, 5]))
        print(number, text, flush=True)
        if len(text) <= MAX_EXPRESSION_LENGTH:
            evaluated(text)
    print("through")


def test_no_random_expression_takes_long() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import expressions; expressions(700)"],
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1]
    assert last == "through", f"{last}\n{done.stderr[-2000:]}"


FUZZERS = {one.__name__: one for one in (random_template, random_text, random_environment)}
TRIES = {"random_template": 250, "random_text": 150, "random_environment": 150}


@pytest.mark.parametrize("hunt", FUZZERS)
def test_fuzzing_finds_no_error(hunt: str) -> None:
    for chance in chances(TRIES[hunt]):
        state = chance.getstate()
        try:
            FUZZERS[hunt](chance)
        except BaseException as error:
            again = f"{hunt} with random.Random seed state {state[1][:3]}"
            raise AssertionError(f"{again}: {error!r}") from error
