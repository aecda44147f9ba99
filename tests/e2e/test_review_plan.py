"""deploy/ci: plans as comments of requests, which are applied after the merge.

The APIs of GitHub and GitLab are replaced by a server that stores comments in the same form.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from aiohttp import web

from tests.support.command_line import headgate, headgate_json
from tests.support.program import ServerProcess
from tools import wheels

CI = Path(__file__).parents[2] / "deploy" / "ci"
SCRIPT = CI / "review_plan.py"
BOT, OTHER = "github-actions[bot]", "eve"


@dataclass(slots=True)
class Comments:
    """Stores the comments of request 7, whose merge has made the commit "merged"."""

    url: str = ""
    stored: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200

    @property
    def texts(self) -> list[str]:
        return [one["body"] for one in self.stored]

    def add(self, text: str, author: str) -> None:
        number = len(self.stored) + 1
        users = {"user": {"login": author}, "author": {"id": 1 if author == BOT else 2}}
        times = {"created_at": "2026-01-01", "updated_at": "2026-01-01"}
        self.stored.append({"id": number, "body": text, **users, **times})

    async def respond(self, request: web.Request) -> web.Response:
        path = request.path
        if self.status != 200:
            return web.json_response({}, status=self.status)
        if path.endswith("/user"):
            return web.json_response({"id": 1})
        if "/commits/" in path:
            merged = [{"number": 7, "iid": 7, "merged_at": "2026-01-01", "state": "merged"}]
            return web.json_response(merged if "/commits/merged/" in path else [])
        if request.method == "GET":
            size, page = int(request.query["per_page"]), int(request.query["page"])
            return web.json_response(self.stored[(page - 1) * size : page * size])
        self.add((await request.json())["body"], BOT)
        return web.json_response({})


@pytest_asyncio.fixture
async def comments() -> AsyncIterator[Comments]:
    found = Comments()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.respond)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield found
    await runner.cleanup()


@dataclass(frozen=True, slots=True)
class Job:
    """Runs the script as a job does. variables: of the service."""

    server: ServerProcess
    folder: Path
    variables: dict[str, str]

    async def run(self, what: str, stack: str, *more: str, commit: str = "merged") -> Any:
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HEADGATE_URL": self.server.url,
            **self.variables,
            "GITHUB_SHA": commit,
            "CI_COMMIT_SHA": commit,
        }
        arguments = [sys.executable, str(SCRIPT), what, "update", stack, *more]
        return await asyncio.to_thread(
            subprocess.run,
            arguments,
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
        )


@dataclass(frozen=True, slots=True)
class Action:
    """Runs the steps of the action as GitHub does: in Bash, with the expressions replaced. runner:
    the temporary folder of the runner."""

    job: Job
    checkout: Path
    runner: Path

    async def run(self, event: str, inputs: dict[str, str]) -> Any:
        """Return the result of the last step that ran. The first run of all installs the command
        line, as that step depends on nothing else."""
        action = yaml.safe_load((self.checkout / "deploy" / "ci" / "action.yml").read_text())
        values = {"github.token": self.job.variables["GITHUB_TOKEN"]}
        for name, described in action["inputs"].items():
            default = self._replaced(described.get("default", ""), values)
            values[f"inputs.{name}"] = inputs.get(name, default)
        install, review = action["runs"]["steps"]

        async def run(step: Any) -> Any:
            variables = {key: self._replaced(one, values) for key, one in step["env"].items()}
            return await asyncio.to_thread(self._step, step["run"], {**variables, "E": event})

        if not self.runner.exists():
            installed = await run(install)
            if installed.returncode:
                return installed
        return await run(review)

    def _step(self, script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            # Dependencies are not downloaded: those of the tests are used.
            "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0",
            "PYTHONPATH": sysconfig.get_path("purelib"),
            "RUNNER_TEMP": str(self.runner),
            "GITHUB_ACTION_PATH": str(self.checkout / "deploy" / "ci"),
            "GITHUB_EVENT_NAME": variables.pop("E"),
            "GITHUB_SHA": "merged",
            **{key: one for key, one in self.job.variables.items() if key != "GITHUB_TOKEN"},
            **variables,
        }  # fmt: skip
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            env=environment, cwd=self.job.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip

    @staticmethod
    def _replaced(text: str, values: dict[str, str]) -> str:
        return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: values[found[1]], text)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    wheels.stage_server(folder)
    shutil.copytree(CI, folder / "deploy" / "ci")
    return folder


@pytest.fixture
def action(job: Job, checkout: Path) -> Action:
    return Action(job, checkout, checkout.parent / "runner")


def template(folder: Path, value: str) -> str:
    path = folder / "web.yaml"
    resource = {"type": "OS::Heat::TestResource", "properties": {"value": value}}
    document = {"heat_template_version": "2018-08-31", "resources": {"a": resource}}
    path.write_text(json.dumps(document))
    return str(path)


@pytest.fixture
def job(
    request: pytest.FixtureRequest, server: ServerProcess, comments: Comments, tmp_path: Path
) -> Job:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    github = {
        "GITHUB_API_URL": comments.url,
        "GITHUB_REPOSITORY": "ann/site",
        "GITHUB_TOKEN": "t",
        "GITHUB_EVENT_PATH": str(event),
    }
    gitlab = {
        "GITLAB_CI": "true",
        "CI_API_V4_URL": comments.url,
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "HEADGATE_GITLAB_TOKEN": "t",
    }
    return Job(server, tmp_path, gitlab if getattr(request, "param", "") == "gitlab" else github)


async def create(job: Job, request: pytest.FixtureRequest) -> str:
    """Create a stack of the test; return its name."""
    name = f"review-{abs(hash(request.node.name)) % 10**9}"
    made = ("stack", "create", name, "-t", template(job.folder, "old"), "--wait")
    await asyncio.to_thread(headgate, job.server, *made)
    return name


async def value_of(job: Job, stack: str) -> str:
    shown = await asyncio.to_thread(headgate_json, job.server, "resource", "show", stack, "a")
    return str(shown["attributes"]["output"])


@pytest.mark.parametrize("job", ["github", "gitlab"], indirect=True)
async def test_exactly_the_plan_in_the_comment_is_applied(
    job: Job, comments: Comments, request: pytest.FixtureRequest
) -> None:
    stack = await create(job, request)
    for value in ("first", "```second"):
        planned = await job.run("plan", stack, "-t", template(job.folder, value))
        assert planned.returncode == 0, planned.stderr
    _, text = comments.texts
    assert "```second" in text and "\n````\n" in text
    comments.add(text.replace(text[-64:], "0" * 64), OTHER)
    applied = await job.run("apply", stack, "-t", template(job.folder, "```second"))
    assert applied.returncode == 0, applied.stderr + applied.stdout
    assert await value_of(job, stack) == "```second"


@pytest.mark.parametrize("job", ["github", "gitlab"], indirect=True)
async def test_a_plan_without_review_is_not_applied(
    job: Job, comments: Comments, request: pytest.FixtureRequest
) -> None:
    stack = await create(job, request)
    changed = template(job.folder, "new")
    for forged in ("", OTHER):
        if forged:
            await job.run("plan", stack, "-t", changed)
            comments.stored = [
                {**one, "user": {"login": OTHER}, "author": {"id": 2}} for one in comments.stored
            ]
        refused = await job.run("apply", stack, "-t", changed)
        assert (refused.returncode, await value_of(job, stack)) == (1, "old")
        assert f'request 7 has no plan of the stack "{stack}"' in refused.stderr
    direct = await job.run("apply", stack, "-t", changed, commit="direct")
    assert direct.returncode == 1
    assert "no plan was reviewed" in direct.stderr


async def test_a_plan_that_was_edited_is_not_applied(
    job: Job, comments: Comments, request: pytest.FixtureRequest
) -> None:
    stack = await create(job, request)
    changed = template(job.folder, "new")
    await job.run("plan", stack, "-t", changed)
    comments.stored[0] |= {"body": comments.texts[0].replace("new", "old"), "updated_at": "later"}
    refused = await job.run("apply", stack, "-t", changed)
    assert (refused.returncode, await value_of(job, stack)) == (1, "old")
    assert "was edited" in refused.stderr


async def test_a_stack_that_has_changed_since_is_not_updated(
    job: Job, request: pytest.FixtureRequest
) -> None:
    stack = await create(job, request)
    await job.run("plan", stack, "-t", template(job.folder, "new"))
    between = ("stack", "update", stack, "-t", template(job.folder, "between"), "--wait")
    await asyncio.to_thread(headgate, job.server, *between)
    refused = await job.run("apply", stack, "-t", template(job.folder, "new"))
    assert refused.returncode == 1
    assert "the plan has changed since" in refused.stderr
    assert await value_of(job, stack) == "between"


async def test_a_wrong_template_and_a_service_that_refuses_fail_the_job(
    job: Job, comments: Comments, request: pytest.FixtureRequest
) -> None:
    stack = await create(job, request)
    (job.folder / "wrong.yaml").write_text("resources: {}")
    wrong = await job.run("plan", stack, "-t", "wrong.yaml")
    assert wrong.returncode == 1
    assert "there is no plan" in wrong.stderr
    comments.status = 403
    refused = await job.run("plan", stack, "-t", template(job.folder, "new"))
    assert refused.returncode == 1
    assert "403" in refused.stderr and "Traceback" not in refused.stderr
    assert comments.stored == []


async def test_what_is_missing_is_named(job: Job) -> None:
    incomplete = Job(job.server, job.folder, {"GITHUB_API_URL": "http://127.0.0.1"})
    missing = await incomplete.run("plan", "web", "-t", "web.yaml")
    assert missing.returncode == 1
    assert "the variable GITHUB_TOKEN is missing or empty" in missing.stderr


async def test_the_action_shows_the_plan_in_a_request_and_applies_it_after_the_merge(
    action: Action, comments: Comments, request: pytest.FixtureRequest
) -> None:
    job = action.job
    stack = await create(job, request)
    (job.folder / "with space.yaml").write_text(Path(template(job.folder, "new")).read_text())
    inputs = {"stack": stack, "options": "-t 'with space.yaml'", "url": job.server.url}
    inputs |= {"project": "", "token": ""}
    planned = await action.run("pull_request", inputs)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert [stack in text for text in comments.texts] == [True]
    assert await value_of(job, stack) == "old"
    applied = await action.run("push", inputs)
    assert applied.returncode == 0, applied.stdout + applied.stderr
    assert await value_of(job, stack) == "new"
    assert len(comments.stored) == 1


async def test_the_action_refuses_other_events_and_options_that_cannot_be_read(
    action: Action, comments: Comments
) -> None:
    inputs = {"stack": "web", "options": "-t web.yaml", "url": action.job.server.url, "token": ""}
    target = await action.run("pull_request_target", inputs)
    assert target.returncode == 2
    assert "::error::this action runs for pull_request and push, not for pull_request_target" in (
        target.stdout
    )
    quoted = await action.run("pull_request", {**inputs, "options": "-t 'web.yaml"})
    assert quoted.returncode == 1
    assert "the options cannot be read: No closing quotation" in quoted.stderr
    assert "web.yaml" not in quoted.stderr + quoted.stdout
    assert comments.stored == []
