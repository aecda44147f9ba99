"""Send each case to Heat and record its response: `make heat-answers`.

Writes recorded/<table>.json: {"heat": version, "answers": {name: {"digest": of the request, and the
response}}}, and combined_snippets.json, the generated snippets.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.compat.hot.cases import RECORDED, TABLES, Case, digest
from tests.compat.hot.combined import generate_snippets

HEAT = Path(__file__).parent / "heat_responses.py"


def main(python: str) -> None:
    snippets = [json.dumps(one, ensure_ascii=False) for one in generate_snippets()]
    write("combined_snippets", "[\n" + ",\n".join(snippets) + "\n]\n")
    for name, cases_of in TABLES.items():
        cases = list(cases_of())
        answers = run_heat(python, cases)
        lines = [
            f"{json.dumps(case['name'])}: " + json.dumps({"digest": digest(case), **answer})
            for case, answer in zip(cases, answers["answers"], strict=True)
        ]
        head = json.dumps(answers["heat"])
        write(name, f'{{"heat": {head}, "answers": {{\n' + ",\n".join(lines) + "\n}}\n")
        print(f"{name}: {len(cases)} cases, answered by Heat {answers['heat']}")


def write(name: str, text: str) -> None:
    """One case per line, for readable diffs."""
    (RECORDED / f"{name}.json").write_text(text)


def run_heat(python: str, cases: list[Case]) -> dict[str, list[dict[str, object]]]:
    document = json.dumps(cases)
    same = {**os.environ, "PYTHONHASHSEED": "0"}  # some texts of Heat depend on the order of sets
    done = subprocess.run(
        [python, HEAT], input=document, stdout=subprocess.PIPE, text=True, check=True, env=same
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


if __name__ == "__main__":
    main(sys.argv[1])
