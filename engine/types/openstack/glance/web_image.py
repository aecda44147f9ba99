"""OS::Glance::WebImage: an image that Glance downloads from a URL.

The ID of an image is chosen by the client: without the property `id`, it is the operation key, by
which a repeated create finds its image.
"""

from collections.abc import Mapping
from typing import Final

from engine.errors import Findings
from engine.types.contract import Call, Done, Failed, Outcome
from engine.types.custom_constraints import ValidationContext
from engine.types.openstack.cloud import Session, segment
from engine.types.openstack.cloud_operation import (
    CloudType,
    cancellation,
    poll,
    proceed,
    run_guarded,
)
from engine.types.openstack.glance.schema import WEB_IMAGE
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import IMAGE
from engine.types.text_cleaning import as_text
from engine.words import Json

#: The form of an update.
_PATCH: Final = "application/openstack-images-v2.1-json-patch"
#: The properties that are fields of the image.
_FIELDS: Final = (
    "architecture", "container_format", "disk_format", "kernel_id", "min_disk", "min_ram", "name",
    "os_distro", "os_version", "owner", "protected", "ramdisk_id", "tags", "visibility",
)  # fmt: skip
_IN_PROGRESS: Final = frozenset({"queued", "saving", "uploading", "importing"})

#: In the data: the ID of the image that a create without an answer may have created.
_LOST: Final = "lost"


class WebImage(CloudType):
    replaces_tainted = False
    template_ids = True
    cancellable = True
    schema = WEB_IMAGE

    async def create(self, call: Call) -> Outcome:
        image_id = (call.progress or {}).get("id")
        if call.cancelled:
            return cancellation(image_id or (_image_id(call) if call.repeated else None), call.data)
        if image_id is None:
            own = {} if call.properties.get("id") else {_LOST: str(call.operation_key)}
            return await run_guarded(call, lambda: self._begin_create(call), None, own)
        return await run_guarded(call, lambda: self._poll_create(call, image_id), image_id)

    async def update(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._update(call), call.physical_id)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        extra = properties.get("extra_properties")
        if isinstance(extra, Mapping) and "id" in extra:
            reason = "is reserved: Headgate finds the image of an interrupted create by its ID"
            remedy = "Remove it. The property id sets the ID of the image."
            findings.add(f"{place}.extra_properties.id", reason, remedy)

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        found = await _find(self._cloud.session(context), physical_id)
        return None if found is not None else f"there is no image {physical_id}"

    async def _begin_create(self, call: Call) -> Outcome:
        session, image_id = self._cloud.session(call), _image_id(call)
        if not call.repeated or await _find(session, image_id) is None:
            image = {**_fields(call), **_extra(call.properties), "id": image_id}
            image["name"] = image.get("name") or call.own_name
            await session.request(IMAGE, "POST", "/images", "create the image", image)
        return proceed(call, {"id": image_id})

    async def _poll_create(self, call: Call, image_id: str) -> Outcome:
        session, progress = self._cloud.session(call), dict(call.progress or {})
        image = await _find(session, image_id)
        status = str(image.get("status")) if image is not None else "deleted"
        if status == "active":
            return await self._finish(session, call, image_id)
        if status == "queued" and not progress.get("imported"):
            method = {"name": "web-download", "uri": call.properties["location"]}
            path, doing = f"/images/{segment(image_id)}/import", "download the image"
            try:
                await session.request(IMAGE, "POST", path, doing, {"method": method})
            except CloudError as error:
                if error.status != CONFLICT:  # of a lost request: the download is under way
                    raise
            return proceed(call, {**progress, "imported": True})
        why = await _failure(session, image_id) if status == "queued" else ""
        if status in _IN_PROGRESS and not why:
            return poll(call, progress, f"the image is {status}", "the image is not active yet")
        public = f"Glance could not download the image; it is {status}"
        reason = f"{public}: {why}" if why else public
        return Failed(reason, image_id, call.data, public_reason=public)

    async def _finish(self, session: Session, call: Call, image_id: str) -> Outcome:
        """Write what an image gets when it is active: members, and whether it can be used."""
        path, before = f"/images/{segment(image_id)}", call.previous or {}
        wanted = {str(one) for one in call.properties.get("members") or []}
        now = {str(one) for one in before.get("members") or []}
        for member in sorted(wanted - now):
            try:
                body: Json = {"member": member}
                await session.request(IMAGE, "POST", f"{path}/members", "share the image", body)
            except CloudError as error:
                if error.status != CONFLICT:  # it is a member already
                    raise
        for member in sorted(now - wanted):
            await session.request(
                IMAGE, "DELETE", f"{path}/members/{segment(member)}", "share the image no longer"
            )
        image = await _find(session, image_id) or {}
        active = call.properties.get("active") is not False
        if active != (image.get("status") == "active"):
            action = "reactivate" if active else "deactivate"
            await session.request(IMAGE, "POST", f"{path}/actions/{action}", f"{action} the image")
            image = await _find(session, image_id) or {}
        return Done(image_id, {"show": dict(image)}, call.data)

    async def _update(self, call: Call) -> Outcome:
        session, image_id = self._cloud.session(call), str(call.physical_id)
        image = await _find(session, image_id) or {}
        wanted = {**_fields(call), **_extra(call.properties)}
        wanted["name"] = wanted.get("name") or image.get("name")
        known = [*_FIELDS, *_extra(call.previous or {})]
        operations: list[Json] = [
            {"op": "remove", "path": f"/{name}"}
            for name in known
            if name not in wanted and image.get(name) is not None and name not in ("tags", "owner")
        ]
        operations += [
            {"op": "replace" if name in image else "add", "path": f"/{name}", "value": value}
            for name, value in wanted.items()
            if image.get(name) != value
        ]
        if operations:
            path, doing = f"/images/{segment(image_id)}", "change the image"
            await session.request(IMAGE, "PATCH", path, doing, operations, media_type=_PATCH)
        return await self._finish(session, call, image_id)

    async def _delete(self, call: Call) -> Outcome:
        if (image_id := call.physical_id or call.data.get(_LOST)) is None:
            return Done(None)
        session = self._cloud.session(call)
        path = f"/images/{segment(image_id)}"
        await session.delete(IMAGE, path, "delete the image")
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        image = await _find(self._cloud.session(call), str(call.physical_id))
        if image is None:
            reason = "the image does not exist"
            return Failed(reason, None, call.data, public_reason=reason)
        return Done(call.physical_id, {"show": dict(image)}, call.data)


def _image_id(call: Call) -> str:
    return str(call.properties.get("id") or call.operation_key)


def _fields(call: Call) -> dict[str, Json]:
    values = {name: call.properties.get(name) for name in _FIELDS}
    return {name: one for name, one in values.items() if one is not None}


def _extra(properties: Mapping[str, Json]) -> dict[str, Json]:
    """The further properties. The ID, by which a repeated create finds the image, is none."""
    given = properties.get("extra_properties") or {}
    return {str(name): as_text(one) for name, one in given.items() if name != "id"}


async def _find(session: Session, image_id: str) -> Mapping[str, Json] | None:
    return await session.find(IMAGE, f"/images/{segment(image_id)}", "", "read the image")


async def _failure(session: Session, image_id: str) -> str:
    """Why the last download failed; "" if it did not."""
    tasks = await session.list(IMAGE, f"/images/{segment(image_id)}/tasks", "tasks")
    failed = [one for one in tasks if one.get("status") == "failure"]
    return str(failed[0].get("message") or "unknown") if failed else ""
