"""The requests that Slack has sent in the last minutes, so that a copied one is refused."""

from datetime import timedelta
from typing import Final

from engine.store.connection import Connection

#: Longer than the time of a request is accepted.
KEPT: Final = timedelta(minutes=15)
#: Deletes some of those that are no longer needed, each time.
REMEMBER = """
with expired as (
    select signature from slack_request
     where received_at < statement_timestamp() - $2::interval
     order by received_at limit 100 for update skip locked
), deleted as (
    delete from slack_request where signature = any (array(select signature from expired))
)
insert into slack_request (signature, received_at) values ($1, clock_timestamp())
on conflict (signature) do nothing
returning true
"""


async def remember_request(conn: Connection, signature: bytes) -> bool:
    """Return False if a request with this signature was received before."""
    return bool(await conn.fetchval(REMEMBER, signature, KEPT))
