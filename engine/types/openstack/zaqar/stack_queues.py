"""The queues of a project of stack users."""

from engine.types.openstack.cloud import Session, segment
from engine.types.openstack.services import MESSAGING


async def remove_queues(session: Session, keep: str = "") -> None:
    """Delete all queues of the session's project except `keep`. Raises CloudError."""
    if await session.find_endpoint(MESSAGING, "find Zaqar") is None:
        return
    names: list[str] = []
    async for page in session.pages(MESSAGING, "/queues", "queues", page=0):
        names.extend(str(one.get("name")) for one in page)
    for name in names:
        if name != keep:
            await session.delete(MESSAGING, f"/queues/{segment(name)}", "delete the queue")
