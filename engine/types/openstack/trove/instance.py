"""OS::Trove::Instance: a database server.

Trove carries out a request after its answer. An update changes one thing after the other, and waits
in between until the instance is ready. Databases and users that other clients create stay.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from engine.errors import Findings
from engine.types.contract import Call, Outcome, Replace, Wait
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.cloud_operation import proceed
from engine.types.openstack.object_type import NAME, ObjectRow
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import DATABASE
from engine.types.openstack.trove.lookups import FLAVORS, check_interfaces, interface_of
from engine.types.openstack.trove.schema import INSTANCE
from engine.types.openstack.trove.trove_type import (
    BUSY,
    FAILED,
    FLAVOR,
    REPAIR,
    REPLICA_OF,
    SIZE,
    TYPE,
    VERSION,
    TroveType,
    flat,
)
from engine.words import Json

DATABASES, USERS, PASSWORD = "databases", "users", "password"
NICS, REPLICA_COUNT = "networks", "replica_count"
Key = TypeVar("Key")
#: In the progress of a create: how often it has found a failed instance without a reason.
READS: Final = "reads"
#: Reads of the instance until it has a reason, and the seconds between them.
MAX_READS: Final = 10
READ_PAUSE: Final = 1.0
#: In the progress of an update: the requests that Trove has accepted.
SENT: Final = "sent"


class DatabaseInstance(TroveType):
    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "database instance", DATABASE, "/instances", "instance", "instances",
            lookups={FLAVOR: FLAVORS}, marked=False, busy=BUSY,
            failed=FAILED,
        )  # fmt: skip
        super().__init__(INSTANCE, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if properties.get(VERSION) and not properties.get(TYPE):
            reason = f"is missing: {VERSION} requires it"
            findings.add(f"{place}.{TYPE}", reason, "Name the datastore of the version.")
        if (properties.get(REPLICA_COUNT) or 1) != 1:
            reason = "creates instances that no resource would delete"
            findings.add(f"{place}.{REPLICA_COUNT}", reason, "Use a resource for each replica.")
        check_interfaces(properties.get(NICS) or (), f"{place}.{NICS}", findings)
        users = properties.get(USERS) or ()
        if users and not properties.get(DATABASES):
            findings.add(f"{place}.{DATABASES}", "is missing: users requires it", "Add databases.")
            return
        known = {one.get(NAME) for one in properties.get(DATABASES) or ()}
        for number, one in enumerate(users):
            for name in one.get(DATABASES) or ():
                if name not in known:
                    at = f"{place}.{USERS}.{number}.{DATABASES}"
                    findings.add(at, f"has {name}, which is not in {DATABASES}", "Add it there.")

    async def failure_reason(self, session: Session, found: Mapping[str, Json]) -> str:
        """An administrator also sees the stack trace of a fault, which is left out."""
        fault = found.get("fault")
        message = fault.get("message") if isinstance(fault, Mapping) else None
        return f"{self.status(found)}: {message}" if message else self.status(found)

    async def put(
        self, session: Session, path: str, object_id: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        await self._send(session, "PATCH", object_id, "", {self.row.key: fields})
        return await self.get(session, path, object_id)

    async def attributes_of(self, session: Session, found: Mapping[str, Json]) -> dict[str, Json]:
        links = found.get("links") or ()
        own = (one.get("href") for one in links if one.get("rel") == "self")
        known = await super().attributes_of(session, found)
        return {**known, "href": next(own, None)}

    # ---- create

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        given = {name: one for name, one in call.properties.items() if one is not None}
        fields: dict[str, Json] = {NAME: given.get(NAME)}
        if REPLICA_OF in given:  # a replica has the flavor and the volume of its source
            fields[REPLICA_OF] = given[REPLICA_OF]
        else:
            fields["flavorRef"] = await FLAVORS.find_id(session, given[FLAVOR], call.project)
            fields["volume"] = {SIZE: given[SIZE]}
            if TYPE in given:
                version = {"version": given[VERSION]} if VERSION in given else {}
                fields["datastore"] = {"type": given[TYPE], **version}
        if given.get(DATABASES):
            fields[DATABASES] = given[DATABASES]
        if given.get(USERS):
            fields[USERS] = [_user_fields(one) for one in given[USERS]]
        if "restore_point" in given:
            fields["restorePoint"] = {"backupRef": given["restore_point"]}
        if "availability_zone" in given:
            fields["availability_zone"] = given["availability_zone"]
        if given.get(NICS):
            fields["nics"] = [await interface_of(session, one, call.project) for one in given[NICS]]
        return fields

    async def _continue(self, call: Call, session: Session) -> Outcome:
        """Trove renames an instance only when it is ready."""
        if call.previous is not None:
            return await self._change(call, session)
        progress = dict(call.progress or {})
        found = await self.get(session, self.row.path, progress["id"])
        if (waits := self.wait_until_ready(call, found)) is not None:
            return waits
        reads = progress.get(READS, 0)
        if self.status(found) in FAILED and not found.get("fault") and reads < MAX_READS:
            until = call.now + timedelta(seconds=READ_PAUSE)
            public = f"the {self.row.what} has failed, and Trove has not stored the reason yet"
            return Wait(until, {**progress, READS: reads + 1}, public, public_reason=public)
        return await self._finish(call, session, found)

    # ---- update

    async def _update(self, call: Call, session: Session) -> Outcome:
        return await self._change(call, session)

    async def _change(self, call: Call, session: Session) -> Outcome:
        """The next request of an update, or its end."""
        path, object_id = self.row.path, str(call.physical_id)
        if (found := await self.find(session, path, object_id)) is None:
            return Replace()  # it was deleted outside of the stack
        progress = {"id": object_id, SENT: [], **(call.progress or {})}
        status = self.status(found)
        if status in self.row.failed:
            reason = await self.failure_reason(session, found)
            public = f"the {self.row.what} has failed"
            raise CloudError(f"{public}: {reason}. {REPAIR}", public=public)
        if (waits := self.wait_until_ready(call, found)) is not None:
            return waits
        for name, wanted in await self._find_resizes(call, session, found):
            if name in progress[SENT]:
                reason = await self.failure_reason(session, found)
                public = f"Trove did not change the {name} of the {self.row.what}"
                raise CloudError(f"{public}: {reason}", public=public)
            await self._send(session, "POST", object_id, "/action", {"resize": wanted})
            return proceed(call, {**progress, SENT: [*progress[SENT], name]})
        if self.touches(call, NAME):
            fields = self.renamed_fields(call)
            if found.get(NAME) != fields[NAME]:
                found = await self.put(session, path, object_id, fields)
        if self.touches(call, DATABASES) or self.touches(call, USERS):
            await self._change_contents(call, session, object_id)
        return await self._done(call, session, path, found)

    async def _find_resizes(
        self, call: Call, session: Session, found: Mapping[str, Json]
    ) -> Sequence[tuple[str, Mapping[str, Json]]]:
        """What has another size than the template gives it: the property, and the request."""
        wanted: list[tuple[str, Mapping[str, Json]]] = []
        now = flat(found)
        if call.properties.get(REPLICA_OF):
            return wanted
        if self.touches(call, FLAVOR):
            flavor = await FLAVORS.find_id(session, call.properties[FLAVOR], call.project)
            if now.get(FLAVOR) != flavor:
                wanted.append((FLAVOR, {"flavorRef": flavor}))
        size = call.properties[SIZE]
        if self.touches(call, SIZE) and SIZE in now and now[SIZE] != size:
            if now[SIZE] > size:
                public = "the volume of a database instance cannot become smaller"
                raise CloudError(f"{public}: it has {now[SIZE]} GiB", public=public)
            wanted.append((SIZE, {"volume": {SIZE: size}}))
        return wanted

    def renamed_fields(self, call: Call) -> dict[str, Json]:
        given = call.properties.get(NAME)
        return {NAME: given or self.cleared_value(call, NAME)}

    async def _change_contents(self, call: Call, session: Session, object_id: str) -> None:
        """Create databases and users that the template has, change them, and delete those that it
        had."""
        path = f"{self.row.path}/{segment(object_id)}"
        databases = _by(call.properties.get(DATABASES), _name)
        former = _by((call.previous or {}).get(DATABASES), _name)
        there = _by(await session.list(DATABASE, f"{path}/databases", DATABASES), _name)
        if added := [one for name, one in databases.items() if name not in there]:
            await self._send(session, "POST", object_id, "/databases", {DATABASES: added})
        await self._change_users(call, session, object_id)
        for name in former.keys() - databases.keys():
            doing = "delete the database"
            await session.delete(DATABASE, f"{path}/databases/{segment(name)}", doing)

    async def _change_users(self, call: Call, session: Session, object_id: str) -> None:
        path = f"{self.row.path}/{segment(object_id)}/users"
        users = _by(call.properties.get(USERS), _user)
        former = _by((call.previous or {}).get(USERS), _user)
        there = _by(await session.list(DATABASE, path, USERS), _user)
        if added := [_user_fields(one) for key, one in users.items() if key not in there]:
            await self._send(session, "POST", object_id, "/users", {USERS: added})
        for key, one in users.items():
            if key not in there:
                continue
            if call.failed or former.get(key, {}).get(PASSWORD) != one[PASSWORD]:
                login = {name: one[name] for name in (NAME, PASSWORD)}
                body = {USERS: [{**login, "host": key[1]}]}
                await self._send(session, "PUT", object_id, "/users", body)
            await self._change_access(session, f"{path}/{_user_segment(key)}", one)
        for key in former.keys() - users.keys():
            doing = "delete the user of databases"
            await session.delete(DATABASE, f"{path}/{_user_segment(key)}", doing)

    async def _change_access(self, session: Session, path: str, user: Mapping[str, Json]) -> None:
        doing = "change the databases of a user"
        granted = await session.list(DATABASE, f"{path}/databases", DATABASES)
        now, wanted = {_name(one) for one in granted}, {str(one) for one in user[DATABASES]}
        if added := sorted(wanted - now):
            body = {DATABASES: [{NAME: one} for one in added]}
            await session.request(DATABASE, "PUT", f"{path}/databases", doing, body)
        for name in sorted(now - wanted):
            await session.delete(DATABASE, f"{path}/databases/{segment(name)}", doing)

    async def _send(
        self, session: Session, method: str, object_id: str, place: str, body: Json
    ) -> None:
        path = f"{self.row.path}/{segment(object_id)}{place}"
        await session.send(DATABASE, method, path, f"update the {self.row.what}", body)


def _name(one: Json) -> str:
    """Of a database, which users have by its name alone."""
    return str(one.get(NAME) if isinstance(one, Mapping) else one)


def _user(one: Mapping[str, Json]) -> tuple[str, str]:
    return _name(one), str(one.get("host") or "%")


def _user_segment(user: tuple[str, str]) -> str:
    return segment("@".join(user))


def _by(entries: Json, key: Callable[[Mapping[str, Json]], Key]) -> dict[Key, Json]:
    return {key(one): one for one in entries or ()}


def _user_fields(user: Mapping[str, Json]) -> dict[str, Json]:
    given = {name: one for name, one in user.items() if one is not None}
    return {**given, DATABASES: [{NAME: one} for one in user.get(DATABASES) or ()]}
