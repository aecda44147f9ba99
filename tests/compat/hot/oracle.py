"""What OpenStack Heat makes of a template: its own engine, asked in this process.

    .heat/bin/python tests/compat/hot/oracle.py < cases.json > answers.json

cases.json: a list of cases (see cases.py); answers.json: {"heat": version, "answers": [...]}, one
answer a case, in their order:

    {"refused": {"type": ..., "message": ...}}     the request was answered with an error
    {"status": ..., "reason": ..., "resources": {name: {"type": ..., "metadata": ...}},
     "outputs": {key: value}, "errors": {key: message}}    a stack was made
    the same, and "kept": [name]    it was updated; of these resources there is still the same one
    {"said": ...}    what was asked for needs no stack: see ASKED

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
from heat.rpc import api as rpc_api  # noqa: E402
from heat.rpc import client as rpc_client  # noqa: E402
from oslo_messaging import ExpectedException  # noqa: E402

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
    rpc_client.EngineClient.call = call
    rpc_client.EngineClient.cast = call


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
    """What becomes of a request; without a word of what is asked, it is one for a stack."""
    try:
        return ASKED[case.get("asks", "stack")](case["request"])
    except Timeout:
        return {"refused": {"type": "Timeout", "message": f"took more than {SECONDS} seconds"}}
    except Exception as error:
        return {"refused": refusal(error)}
    finally:
        forget()


def create(request: Any) -> dict[str, Any]:
    """As POST /stacks."""
    return outcome(created(request))


def created(request: Any) -> Any:
    made = accept(request)
    made.store()
    made.create()
    made._persist_state()  # as whoever holds the lock of a stack does at the end
    return stack.Stack.load(caller(), stack_id=made.id)


def update(request: Any) -> dict[str, Any]:
    """As PUT /stacks/.. after POST /stacks, or PATCH."""
    before = created(request["create"])
    ids = {name: one.resource_id for name, one in before.resources.items()}
    patch = request["patch"]
    body = stacks.InstantiationData(request["update"], patch=patch)
    args = body.args() | ({rpc_api.PARAM_EXISTING: True} if patch else {})
    written = body.template() if "template" in request["update"] or not patch else None
    _, current, wanted = engine()._prepare_stack_updates(
        caller(), before, written, body.environment(), body.environment_files() or None,
        body.files() or {}, None, args,
    )  # fmt: skip
    current.update(wanted)
    current._persist_state()
    after = stack.Stack.load(caller(), stack_id=before.id)
    same = [name for name, one in after.resources.items() if ids.get(name) == one.resource_id]
    return outcome(after) | {"kept": sorted(same)}


def validate(request: Any) -> dict[str, Any]:
    """As POST /validate."""
    body = stacks.InstantiationData(request["body"])
    codes = request.get("ignore_errors")
    said = engine().validate_template(
        caller(), body.template(), body.environment(), body.files() or {},
        body.environment_files() or None, show_nested=request.get("show_nested", False),
        ignorable_errors=codes.split(",") if codes else None,
    )  # fmt: skip
    if "Error" in said:
        return {"refused": {"type": "HTTPBadRequest", "message": said["Error"]}}
    return {"said": json.loads(json.dumps(said, sort_keys=True, default=str))}


def list_versions(_: Any) -> dict[str, Any]:
    said = engine().list_template_versions(caller())
    return {"said": sorted(said, key=lambda one: str(one["version"]))}


def list_functions(request: Any) -> dict[str, Any]:
    """Their names; Heat adds those of conditions for good when it was once asked for them."""
    language = template._get_template_extension_manager()[request["version"]].plugin
    before = dict(language.functions)
    try:
        said = engine().list_template_functions(caller(), request["version"], request["conditions"])
    finally:
        language.functions.clear()
        language.functions.update(before)
    return {"said": sorted(one["functions"] for one in said)}


#: What a case may ask for.
ASKED = {
    "stack": create,
    "update": update,
    "validation": validate,
    "versions": list_versions,
    "functions": list_functions,
}


def engine() -> Any:
    """As much of Heat's engine as does what is asked of it at once, in this process."""
    made = object.__new__(service.EngineService)
    made.resource_enforcer = AnyoneMay()
    made.thread_group_mgr = AtOnce()
    made.engine_id = "asked"
    return made


class AnyoneMay:
    def enforce_stack(self, *_: Any, **__: Any) -> None:
        pass


class AtOnce:
    """In place of threads."""

    def start_with_lock(self, _: Any, made: Any, __: str, do: Any, *args: Any, **more: Any) -> Any:
        more.pop("msg_queue", None)
        do(*args, **more)
        made._persist_state()
        return self

    def link(self, *_: Any) -> None:
        pass

    def add_msg_queue(self, *_: Any) -> None:
        pass

    def remove_msg_queue(self, *_: Any) -> None:
        pass


def call(_: Any, who: Any, message: tuple[str, Any], **__: Any) -> Any:
    """What a stack asks of an engine about the stacks inside of it."""
    method, args = message
    return getattr(engine(), method)(who, **args)


def forget() -> None:
    """Every case has the database for itself."""
    with database.get_engine().begin() as connection:
        for table in reversed(models.BASE.metadata.sorted_tables):
            connection.execute(table.delete())


def accept(request: Any) -> Any:
    """What heat.engine.service does with a request before it answers."""
    body = stacks.InstantiationData({"stack_name": "asked", **request})
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
    if isinstance(error, ExpectedException):
        error = error.exc_info[1]
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
