"""Placement plug-ins."""

from engine.types.placement import GroupView, Placement, Places, Refused
from tests.integration.groups.test_members import group, values
from tests.support.program import program


class Rooms(Placement):
    """Two rooms with space for two members each."""

    async def place(self, view: GroupView) -> Places:
        used = [one.placed["value"] for one in view.members]
        places: dict[str, dict[str, str]] = {}
        for name in view.new:
            room = min(("north", "south"), key=used.count)
            if used.count(room) == 2:
                raise Refused("no room is left")
            used.append(room)
            places[name] = {"value": room}
        return places


async def test_members_get_their_places_and_a_refused_placement_creates_none(
    database_url: str,
) -> None:
    async with program(database_url, placement=Rooms()) as run:
        await run.create("s", {"g": group(3)})
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        assert await values(run) == {"0": "north", "1": "south", "2": "north"}
        await run.update("s", template={"heat_template_version": "2018-08-31",
                                        "resources": {"g": group(5)}})  # fmt: skip
        assert await run.until_ended("s") == "UPDATE_FAILED"
        reason = (await run.stack("s"))["stack_status_reason"]
        assert "Rooms refused to place members: no room is left" in reason
        assert sorted(await values(run)) == ["0", "1", "2"]
