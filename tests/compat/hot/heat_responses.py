"""The responses of OpenStack Heat: its own engine, called in this process.

    .heat/bin/python tests/compat/hot/heat_responses.py < cases.json > responses.json

cases.json: a list of cases (see cases.py); responses.json: {"heat": version, "answers": [...]}, one
response per case, in the same order:

    {"refused": {"type": ..., "message": ...}}     an error
    {"status": ..., "reason": ..., "resources": {name: {"type": ..., "metadata": ...}},
     "outputs": {key: value}, "errors": {key: message}}    a stack was created
    the same, and "kept": [name]    a stack was updated; these resources are still the same ones
    {"response": ...}    a request that needs no stack: see OPERATIONS

Runs in its own virtual environment with openstack-heat, without Headgate. Reads standard input and
writes standard output; the database is SQLite in memory.
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

SECONDS = 20  # per case
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
    settings = {
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
    return context.RequestContext.from_dict(settings)


def respond(case: dict[str, Any]) -> dict[str, Any]:
    """The response to a request; without an `ask`, the request is for a stack."""
    try:
        return OPERATIONS[case.get("asks", "stack")](case["request"])
    except Timeout:
        return {"refused": {"type": "Timeout", "message": f"took more than {SECONDS} seconds"}}
    except Exception as error:
        return {"refused": refusal(error)}
    finally:
        delete_all()


def create(request: Any) -> dict[str, Any]:
    """As POST /stacks."""
    return outcome(created(request))


def created(request: Any) -> Any:
    created = accept(request)
    created.store()
    created.create()
    created._persist_state()  # the holder of a stack lock does this at the end
    return stack.Stack.load(caller(), stack_id=created.id)


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
    result = engine().validate_template(
        caller(), body.template(), body.environment(), body.files() or {},
        body.environment_files() or None, show_nested=request.get("show_nested", False),
        ignorable_errors=codes.split(",") if codes else None,
    )  # fmt: skip
    if "Error" in result:
        return {"refused": {"type": "HTTPBadRequest", "message": result["Error"]}}
    return {"response": json.loads(json.dumps(result, sort_keys=True, default=str))}


def list_versions(_: Any) -> dict[str, Any]:
    result = engine().list_template_versions(caller())
    return {"response": sorted(result, key=lambda one: str(one["version"]))}


def list_functions(request: Any) -> dict[str, Any]:
    """The names of the functions; once asked for those of conditions, Heat adds them
    permanently.
    """
    language = template._get_template_extension_manager()[request["version"]].plugin
    before = dict(language.functions)
    try:
        result = engine().list_template_functions(
            caller(), request["version"], request["conditions"]
        )
    finally:
        language.functions.clear()
        language.functions.update(before)
    return {"response": sorted(one["functions"] for one in result)}


#: Operations that a case can name in `ask`.
OPERATIONS = {
    "stack": create,
    "update": update,
    "validation": validate,
    "versions": list_versions,
    "functions": list_functions,
}


def engine() -> Any:
    """The part of Heat's engine that is necessary to run requests synchronously."""
    engine_service = object.__new__(service.EngineService)
    engine_service.resource_enforcer = AllowAll()
    engine_service.thread_group_mgr = Synchronous()
    engine_service.engine_id = "asked"
    return engine_service


class AllowAll:
    def enforce_stack(self, *_: Any, **__: Any) -> None:
        pass


class Synchronous:
    """Replaces threads: runs at once."""

    def start_with_lock(
        self, _: Any, created: Any, __: str, do: Any, *args: Any, **more: Any
    ) -> Any:
        more.pop("msg_queue", None)
        do(*args, **more)
        created._persist_state()
        return self

    def link(self, *_: Any) -> None:
        pass

    def add_msg_queue(self, *_: Any) -> None:
        pass

    def remove_msg_queue(self, *_: Any) -> None:
        pass


def call(_: Any, request_context: Any, message: tuple[str, Any], **__: Any) -> Any:
    """Requests of a stack to an engine about its nested stacks."""
    method, args = message
    return getattr(engine(), method)(request_context, **args)


def delete_all() -> None:
    """Delete everything: each case has an empty database."""
    with database.get_engine().begin() as connection:
        for table in reversed(models.BASE.metadata.sorted_tables):
            connection.execute(table.delete())


def accept(request: Any) -> Any:
    """The preparation of a request in heat.engine.service."""
    body = stacks.InstantiationData({"stack_name": "asked", **request})
    written, files = body.template(), body.files() or {}
    request_environment = body.environment()
    names = body.environment_files() if body.environment_files() else None
    request_context = caller()
    parsed = template.Template(written, files=files)
    environment_util.merge_environments(
        names, files, request_environment, parsed.all_param_schemata(files)
    )
    parsed.env = environment.Environment(request_environment)
    service.EngineService._validate_template(None, request_context, parsed)
    created = stack.Stack(request_context, "asked", parsed, disable_rollback=True)
    created.validate()
    return created


def refusal(error: Exception) -> dict[str, str]:
    if isinstance(error, exception.HTTPExceptionDisguise):
        error = error.exc
    if isinstance(error, ExpectedException):
        error = error.exc_info[1]
    kind = type(error).__name__
    message = error.message if isinstance(error, exception.HeatException) else str(error)
    return {"type": kind, "message": str(message)}


def outcome(created: Any) -> dict[str, Any]:
    result: dict[str, Any] = {
        "status": f"{created.action}_{created.status}",
        "reason": created.status_reason,
        "resources": {},
        "outputs": {},
        "errors": {},
    }
    for resource in created._explicit_dependencies():  # as the API shows a stack
        data = resource.node_data(for_resources=False, for_outputs=True)
        stk_defn.update_resource_data(created.defn, resource.name, data)
    for name, resource in sorted(created.resources.items()):
        result["resources"][name] = {"type": resource.type(), "metadata": resource.metadata_get()}
    for key, output in sorted(created.outputs.items()):
        try:
            result["outputs"][key] = output.get_value()
        except Exception as error:
            result["errors"][key] = str(error)
    for resource in created.resources.values():
        if resource.resource_id:
            result = replaced(result, resource.resource_id, f"<id of {resource.name}>")
    final: dict[str, Any] = replaced(result, created.id, "<id of the stack>")
    return final


def replaced(value: Any, old: str, new: str) -> Any:
    """The value with placeholders for parts that differ in each run."""
    replacement: Any = json.loads(re.sub(re.escape(old), new, json.dumps(value, default=str)))
    return replacement


class Timeout(BaseException):
    pass


def raise_timeout(*_: object) -> None:
    raise Timeout


def main() -> None:
    prepare()
    signal.signal(signal.SIGALRM, raise_timeout)
    answers = []
    for case in json.load(sys.stdin):
        signal.alarm(SECONDS)
        answers.append(respond(case))
        signal.alarm(0)
    json.dump({"heat": version("openstack-heat"), "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
