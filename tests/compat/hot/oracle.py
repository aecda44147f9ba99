"""What OpenStack Heat makes of a template: its own engine, asked in this process.

    .heat/bin/python tests/compat/hot/oracle.py < cases.json > answers.json

cases.json: a list of cases (see cases.py); answers.json: {"heat": version, "answers": [...]}, one
answer a case, in their order:

    {"refused": {"type": ..., "message": ...}}     the request was answered with an error
    {"status": ..., "reason": ..., "resources": {name: {"type": ..., "metadata": ...}},
     "outputs": {key: value}, "errors": {key: message}}    a stack was made

Runs in an environment of its own, where openstack-heat is installed; no part of Headgate is there.
Reads standard input and writes standard output; the database is SQLite, in memory.
"""

import json
import logging
import re
import signal
import sys
from importlib.metadata import version
from typing import Any

from oslo_config import cfg
from oslo_db import options
from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from heat.api.openstack.v1 import stacks  # noqa: E402
from heat.common import context, environment_util, exception, messaging  # noqa: E402
from heat.db import api as database  # noqa: E402
from heat.db import models  # noqa: E402
from heat.engine import environment, scheduler, service, stack, stk_defn, template  # noqa: E402
from heat.engine import resources as plugins  # noqa: E402
from heat.engine.clients.os.keystone import fake_keystoneclient  # noqa: E402

SECONDS = 20  # for one case
PROJECT = "acme"


def prepare() -> None:
    logging.disable(logging.CRITICAL)
    options.set_defaults(cfg.CONF, connection="sqlite://")
    cfg.CONF([], project="heat", default_config_files=[], default_config_dirs=[])
    cfg.CONF.set_override("convergence_engine", False)
    cfg.CONF.set_override("reauthentication_auth_method", "")
    cfg.CONF.set_override("deferred_auth_method", "password")
    cfg.CONF.set_override("error_wait_time", None)
    cfg.CONF.set_override("environment_dir", "/nonexistent")
    fake = f"{fake_keystoneclient.__name__}.FakeKeystoneClient"
    cfg.CONF.set_override("keystone_backend", fake)
    messaging.setup("fake://", optional=True)
    models.BASE.metadata.create_all(database.get_engine())
    plugins.initialise()
    scheduler.ENABLE_SLEEP = False


def caller() -> Any:
    said = {
        "tenant_id": PROJECT,
        "tenant": PROJECT,
        "username": "asker",
        "user_id": "asker",
        "password": "",
        "roles": ["member"],
        "is_admin": False,
        "auth_url": "http://127.0.0.1:1/v3",
        "auth_token": "none",
    }
    return context.RequestContext.from_dict(said)


def ask(case: dict[str, Any]) -> dict[str, Any]:
    """Create the stack of a case, as POST /stacks would, and tell what became of it."""
    try:
        return create(accept(case))
    except Timeout:
        return {"refused": {"type": "Timeout", "message": f"took more than {SECONDS} seconds"}}
    except Exception as error:
        return {"refused": refusal(error)}
    finally:
        forget()


def create(made: Any) -> dict[str, Any]:
    made.store()
    made.create()
    made._persist_state()  # as whoever holds the lock of a stack does at the end
    return outcome(stack.Stack.load(caller(), stack_id=made.id))


def forget() -> None:
    """Every case has the database for itself."""
    with database.get_engine().begin() as connection:
        for table in reversed(models.BASE.metadata.sorted_tables):
            connection.execute(table.delete())


def accept(case: dict[str, Any]) -> Any:
    """What heat.engine.service does with a request before it answers."""
    body = stacks.InstantiationData({"stack_name": "asked", **case["request"]})
    written, files = body.template(), body.files() or {}
    given = body.environment()
    names = body.environment_files() if body.environment_files() else None
    who = caller()
    parsed = template.Template(written, files=files)
    environment_util.merge_environments(names, files, given, parsed.all_param_schemata(files))
    parsed.env = environment.Environment(given)
    service.EngineService._validate_template(None, who, parsed)
    made = stack.Stack(who, "asked", parsed, disable_rollback=True)
    made.validate()
    return made


def refusal(error: Exception) -> dict[str, str]:
    if isinstance(error, exception.HTTPExceptionDisguise):
        error = error.exc
    kind = type(error).__name__
    message = error.message if isinstance(error, exception.HeatException) else str(error)
    return {"type": kind, "message": str(message)}


def outcome(made: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "status": f"{made.action}_{made.status}",
        "reason": made.status_reason,
        "resources": {},
        "outputs": {},
        "errors": {},
    }
    for resource in made._explicit_dependencies():  # as when a stack is shown
        data = resource.node_data(for_resources=False, for_outputs=True)
        stk_defn.update_resource_data(made.defn, resource.name, data)
    for name, resource in sorted(made.resources.items()):
        told["resources"][name] = {"type": resource.type(), "metadata": resource.metadata_get()}
    for key, output in sorted(made.outputs.items()):
        try:
            told["outputs"][key] = output.get_value()
        except Exception as error:
            told["errors"][key] = str(error)
    for resource in made.resources.values():
        if resource.resource_id:
            told = replaced(told, resource.resource_id, f"<id of {resource.name}>")
    final: dict[str, Any] = replaced(told, made.id, "<id of the stack>")
    return final


def replaced(value: Any, old: str, new: str) -> Any:
    """What changes with each run stands for itself."""
    made: Any = json.loads(re.sub(re.escape(old), new, json.dumps(value, default=str)))
    return made


class Timeout(BaseException):
    pass


def too_long(*_: object) -> None:
    raise Timeout


def main() -> None:
    prepare()
    signal.signal(signal.SIGALRM, too_long)
    answers = []
    for case in json.load(sys.stdin):
        signal.alarm(SECONDS)
        answers.append(ask(case))
        signal.alarm(0)
    json.dump({"heat": version("openstack-heat"), "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
