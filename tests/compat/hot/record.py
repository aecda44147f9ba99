"""Ask Heat each case and keep what it answers: `make heat-answers`.

Writes recorded/<table>.json: {"heat": version, "answers": {name: {"asked": digest of the request,
and the answer}}}, and combined_snippets.json, what Hypothesis made.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.compat.hot.cases import RECORDED, TABLES, Case, digest
from tests.compat.hot.combined import made_snippets

ORACLE = Path(__file__).parent / "oracle.py"


def main(python: str) -> None:
    snippets = [json.dumps(one, ensure_ascii=False) for one in made_snippets()]
    write("combined_snippets", "[\n" + ",\n".join(snippets) + "\n]\n")
    for name, made in TABLES.items():
        cases = list(made())
        said = ask(python, cases)
        lines = [
            f"{json.dumps(case['name'])}: " + json.dumps({"asked": digest(case), **answer})
            for case, answer in zip(cases, said["answers"], strict=True)
        ]
        head = json.dumps(said["heat"])
        write(name, f'{{"heat": {head}, "answers": {{\n' + ",\n".join(lines) + "\n}}\n")
        print(f"{name}: {len(cases)} cases, answered by Heat {said['heat']}")


def write(name: str, text: str) -> None:
    """A case on a line, so that changes can be read."""
    (RECORDED / f"{name}.json").write_text(text)


def ask(python: str, cases: list[Case]) -> dict[str, list[dict[str, object]]]:
    given = json.dumps(cases)
    same = {**os.environ, "PYTHONHASHSEED": "0"}  # texts of Heat's name sets
    done = subprocess.run(
        [python, ORACLE], input=given, stdout=subprocess.PIPE, text=True, check=True, env=same
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


if __name__ == "__main__":
    main(sys.argv[1])
