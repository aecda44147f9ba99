"""With which credential the observer reads an object of OpenStack."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from engine.errors import Forbidden
from engine.types.contract import Call, ResourceType
from engine.types.openstack.cloud import OBSERVATION_CREDENTIAL_REFUSED, Cloud
from engine.words import Json, ObservedState, ResourceId, StackId
from tests.unit.types.openstack.clouds import Answers, NoIdentity, answer, types_of_all_services

PROJECT = "1" * 32


class Identity(NoIdentity):
    """reader: whether the operator has configured one. refusal: of the owner's credential."""

    def __init__(self, *, reader: bool, refusal: str = "") -> None:
        self.has_reader = reader
        self._refusal = refusal

    async def reader_token(self, refused: str = "") -> str:
        return "reader"

    async def observation_token(self, credential: str, refused: str = "") -> str:
        if self._refusal:
            raise Forbidden(self._refusal, code=OBSERVATION_CREDENTIAL_REFUSED)
        return f"of {credential}"


def call(credential: str = "owner", **shown: Json) -> Call:
    return Call(
        project=PROJECT,
        stack_id=StackId(UUID(int=1)),
        stack_name="s",
        resource_id=ResourceId(UUID(int=2)),
        resource_name="r",
        operation_key=UUID(int=3),
        now=datetime(2026, 1, 1, tzinfo=UTC),
        properties={},
        physical_id="id",
        attributes={"show": shown},
        observation_credential=credential,
    )


def type_of(name: str, cloud: Cloud) -> ResourceType:
    return next(one for one in types_of_all_services(cloud) if one.schema.name == name)


OWN = {"OS::Nova::Server": "tenant_id", "OS::Cinder::Volume": "os-vol-tenant-attr:tenant_id",
       "OS::Nova::ServerGroup": "project_id", "OS::Neutron::Net": "project_id",
       "OS::Octavia::LoadBalancer": "project_id",
       "OS::Designate::Zone": "project_id", "OS::Designate::RecordSet": "project_id"}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_the_owners_credential_observes_recorded_objects_of_the_project(name: str) -> None:
    alone = type_of(name, Cloud(Answers(), Identity(reader=False)))
    field = OWN[name]
    assert alone.observation_key(call(**{field: PROJECT})) is not None
    assert alone.observation_key(call(**{field: "2" * 32})) is None
    assert alone.observation_key(call()) is None
    assert alone.observation_key(call("", **{field: PROJECT})) is None
    read = type_of(name, Cloud(Answers(), Identity(reader=True)))
    assert read.observation_key(call(**{field: "2" * 32})) is not None


def test_objects_of_no_project_need_the_reader() -> None:
    cloud = Cloud(Answers(), Identity(reader=False))
    for name in ("OS::Keystone::Project", "OS::Keystone::UserRoleAssignment"):
        shown = {"id": PROJECT, "domain_id": "default"}
        assert type_of(name, cloud).observation_key(call(**shown)) is None


@pytest.mark.parametrize(("name", "key"), [("OS::Nova::Server", "servers"),
                                           ("OS::Cinder::Volume", "volumes")])  # fmt: skip
@pytest.mark.parametrize(("reader", "token"), [(True, "reader"), (False, "of owner")])
async def test_only_the_reader_lists_the_objects_of_all_projects(
    name: str, key: str, reader: bool, token: str
) -> None:
    web = Answers(*[answer(200, {key: []})] * 2)
    type_ = type_of(name, Cloud(web, Identity(reader=reader)))
    await type_.observe([call(project_id=PROJECT)])  # type: ignore[misc]
    assert web.tokens == [token] * 2
    assert all(("all_tenants" in one.url) is reader for one in web.requests)


@pytest.mark.parametrize(("name", "key"), [("OS::Designate::Zone", "zones"),
                                           ("OS::Designate::RecordSet", "recordsets")])  # fmt: skip
@pytest.mark.parametrize("reader", [True, False])
async def test_only_the_reader_asks_designate_for_all_projects(
    name: str, key: str, reader: bool
) -> None:
    web = Answers(*[answer(200, {key: []})] * 2)
    type_ = type_of(name, Cloud(web, Identity(reader=reader)))
    await type_.observe([call(project_id=PROJECT)])  # type: ignore[misc]
    assert ["X-Auth-All-Projects" in one.headers for one in web.requests] == [reader] * 2


@pytest.mark.parametrize("name", [*OWN, "OS::Swift::Container"])
async def test_a_refused_credential_makes_states_unknown_with_the_reason(name: str) -> None:
    reason = "Keystone rejected the observation credential 5d of this project"
    type_ = type_of(name, Cloud(Answers(), Identity(reader=False, refusal=reason)))
    one = call(project_id=PROJECT)
    found = (await type_.observe([one]))[one.resource_id]  # type: ignore[misc]
    assert found.state is ObservedState.UNKNOWN
    assert reason in found.reason and reason in found.public_reason
