"""The requests of the types of Manila."""

from typing import Any

import orjson

from engine.types.contract import Done, Failed
from tests.unit.types.calls import a_call, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
ID = "11111111-1111-4111-8111-111111111111"


async def test_show_of_a_security_service_lacks_the_password() -> None:
    web = Answers(answer(200, {"security_service": {"id": ID, "password": "planted-71"}}))
    type_ = type_with(web, "OS::Manila::SecurityService")
    properties = {"type": "ldap", "password": "planted-71"}
    done = await run(type_, "create", a_call(type_, properties, credential="t"))
    assert isinstance(done, Done) and done.attributes == {"show": {"id": ID}}
    sent = orjson.loads(web.requests[0].body or b"")
    assert sent["security_service"]["password"] == "planted-71"


async def test_a_share_that_is_being_created_is_not_deleted() -> None:
    web = Answers(answer(200, {"share": {"id": ID, "status": "creating"}}))
    type_ = type_with(web, "OS::Manila::Share")
    call = a_call(type_, {"share_protocol": "NFS", "size": 1}, credential="t", physical_id=ID)
    failed = await run(type_, "delete", call)
    assert isinstance(failed, Failed) and failed.retry
    assert [one.method for one in web.requests] == ["GET"]
