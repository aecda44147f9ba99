"""Lets people review the plan of a stack in a pull or merge request, and applies exactly that plan.

    python review_plan.py plan update web -t web.yaml
    python review_plan.py apply update web -t web.yaml

`plan` shows the plan as a comment of the request. `apply`, after the merge, applies the plan with
the digest of that comment, and fails if the plan has changed since. The words after it are the
arguments of `headgate stack`; `REVIEW_PLAN_OPTIONS` may have more, quoted as in a shell. It runs in
GitHub Actions (action.yml) and in GitLab CI, and needs Python 3.11 and `headgate` (`HEADGATE_URL`,
`HEADGATE_TOKEN`). docs/how-to/review-plans.md describes the set-up.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

#: Seconds for each request, and the number of pages of comments that are read.
TIMEOUT, MAX_PAGES = 30, 50
#: Characters of a plan in a comment. GitHub accepts 65,536 in all.
MAX_PLAN = 60_000
DIGEST = re.compile(r"^Plan: ([0-9a-f]{64})$", re.M)


class ReviewError(Exception):
    """What stops the job, in words for its log."""


@dataclass(frozen=True)
class Comment:
    """is_edited: it is not as this program has written it. Who may write to the repository may edit
    the comments of others."""

    text: str
    is_edited: bool


def marker(stack: str) -> str:
    """The first line of the comment about a stack. It is not displayed."""
    return f"<!-- headgate plan of {quote(stack)} -->"


class Service(ABC):
    """The API of a service with pull or merge requests. headers: authenticate."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json", **headers}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Raises ReviewError."""
        request = urllib.request.Request(
            self._url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers=dict(self._headers),
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise ReviewError(f"{method} {path}: {error.code} {error.reason}") from None
        except (OSError, ValueError) as error:
            raise ReviewError(f"{method} {path}: {error}") from None

    def pages(self, path: str) -> Iterator[Any]:
        for page in range(1, MAX_PAGES + 1):
            items = self.call("GET", f"{path}?per_page=100&page={page}")
            yield from items
            if len(items) < 100:
                return

    @abstractmethod
    def request_number(self) -> str:
        """The pull or merge request under test."""

    @abstractmethod
    def merged_number(self) -> str | None:
        """The request whose merge made the commit of this job; None: there is none."""

    @abstractmethod
    def comments(self, number: str) -> Iterator[Comment]:
        """The comments that this program has written, oldest first. Others are not trusted."""

    @abstractmethod
    def write(self, number: str, text: str) -> None:
        """Add a comment."""


class GitHub(Service):
    def __init__(self, variables: Mapping[str, str]) -> None:
        token = required(variables, "GITHUB_TOKEN")
        super().__init__(
            required(variables, "GITHUB_API_URL"),
            {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
        )
        self._variables = variables
        self._repository = f"/repos/{required(variables, 'GITHUB_REPOSITORY')}"
        self._author = variables.get("HEADGATE_COMMENTER") or "github-actions[bot]"

    def request_number(self) -> str:
        event = json.loads(Path(required(self._variables, "GITHUB_EVENT_PATH")).read_text())
        if "pull_request" not in event:
            raise ReviewError("this job does not run for a pull request: use `on: pull_request`")
        return str(event["pull_request"]["number"])

    def merged_number(self) -> str | None:
        sha = required(self._variables, "GITHUB_SHA")
        pulls = self.call("GET", f"{self._repository}/commits/{sha}/pulls")
        return next((str(one["number"]) for one in pulls if one.get("merged_at")), None)

    def comments(self, number: str) -> Iterator[Comment]:
        for one in self.pages(f"{self._repository}/issues/{number}/comments"):
            if one["user"]["login"] == self._author:
                yield Comment(one["body"], one["updated_at"] != one["created_at"])

    def write(self, number: str, text: str) -> None:
        self.call("POST", f"{self._repository}/issues/{number}/comments", {"body": text})


class GitLab(Service):
    def __init__(self, variables: Mapping[str, str]) -> None:
        token = required(variables, "HEADGATE_GITLAB_TOKEN")
        super().__init__(required(variables, "CI_API_V4_URL"), {"PRIVATE-TOKEN": token})
        self._variables = variables
        self._project = f"/projects/{required(variables, 'CI_PROJECT_ID')}"

    def request_number(self) -> str:
        return required(self._variables, "CI_MERGE_REQUEST_IID")

    def merged_number(self) -> str | None:
        sha = required(self._variables, "CI_COMMIT_SHA")
        requests = self.call("GET", f"{self._project}/repository/commits/{sha}/merge_requests")
        return next((str(one["iid"]) for one in requests if one["state"] == "merged"), None)

    def comments(self, number: str) -> Iterator[Comment]:
        own = self.call("GET", "/user")["id"]
        path = f"{self._project}/merge_requests/{number}/notes"
        for one in sorted(self.pages(path), key=lambda note: int(note["id"])):
            if one["author"]["id"] == own:
                yield Comment(one["body"], one["updated_at"] != one["created_at"])

    def write(self, number: str, text: str) -> None:
        self.call("POST", f"{self._project}/merge_requests/{number}/notes", {"body": text})


def required(variables: Mapping[str, str], name: str) -> str:
    if not variables.get(name):
        raise ReviewError(f"the variable {name} is missing or empty")
    return variables[name]


def more_options(variables: Mapping[str, str]) -> list[str]:
    """The words of `REVIEW_PLAN_OPTIONS`. Raises ReviewError."""
    text = variables.get("REVIEW_PLAN_OPTIONS", "")
    try:
        return shlex.split(text)
    except ValueError as error:
        # Not the text: it may have secrets.
        raise ReviewError(f"the options cannot be read: {error}") from None


def comment_text(stack: str, plan: str) -> str:
    """The plan in a block that it cannot end, because the fence is longer than any in it."""
    shown = plan if len(plan) <= MAX_PLAN else f"{plan[:MAX_PLAN]}\n... (see the log of the job)"
    longest = max((len(one) for one in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    (digest,) = DIGEST.findall(plan)[-1:]
    return "\n".join([
        marker(stack),
        f"Headgate will change the stack `{stack}` after the merge, with this plan or not at all:",
        "",
        f"{fence}\n{shown}\n{fence}",
        "",
        f"Plan: {digest}",
    ])  # fmt: skip


def last_comment(service: Service, number: str, stack: str) -> Comment | None:
    found = [one for one in service.comments(number) if one.text.startswith(marker(stack))]
    return found[-1] if found else None


def plan(service: Service, stack: str, arguments: list[str]) -> None:
    """Write the plan of a change as a comment. Raises ReviewError."""
    done = subprocess.run(
        ["headgate", "stack", *arguments, "--dry-run"],
        check=False, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    print(done.stdout)
    if done.returncode:
        raise ReviewError(f"there is no plan: headgate ended with exit code {done.returncode}")
    if not DIGEST.search(done.stdout):
        raise ReviewError("the output of the dry run has no digest")
    service.write(service.request_number(), comment_text(stack, done.stdout.strip()))


def apply(service: Service, stack: str, arguments: list[str]) -> int:
    """Apply the plan of the merged request; return headgate's exit code. Raises ReviewError."""
    number = service.merged_number()
    if number is None:
        raise ReviewError("no merged request has made this commit, so no plan was reviewed")
    comment = last_comment(service, number, stack)
    if comment is not None and comment.is_edited:
        raise ReviewError(f"the last plan in request {number} was edited after it was written")
    digests = DIGEST.findall(comment.text) if comment else []
    if not digests:
        raise ReviewError(f'request {number} has no plan of the stack "{stack}"')
    command = ["headgate", "stack", *arguments, "--plan", digests[-1], "--wait"]
    return subprocess.run(command, check=False).returncode


def main(arguments: list[str], variables: Mapping[str, str]) -> int:
    if len(arguments) < 3 or arguments[0] not in ("plan", "apply"):
        print("usage: review_plan.py plan|apply create|update STACK [OPTIONS]", file=sys.stderr)
        return 2
    what, stack = arguments[0], arguments[2]
    try:
        change = [*arguments[1:], *more_options(variables)]
        service = GitLab(variables) if variables.get("GITLAB_CI") else GitHub(variables)
        if what == "apply":
            return apply(service, stack, change)
        plan(service, stack, change)
    except ReviewError as error:
        print(f"review_plan: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
