"""What serves the requests of one database: the only one of a process, or one of its cells."""

import secrets
from dataclasses import replace
from uuid import uuid4

from channels.store.hook_notifications import gathered_notifications
from channels.stream import Feed
from engine.store.database import Database
from engine.store.read_database import ReadDatabase
from hub.api.app_context import AppContext
from hub.api.cells import Admission, Cell
from hub.api.costly_requests import CostlyRequests
from hub.auth.gatekeeper import Gatekeeper, RequestLimits
from hub.auth.oidc_client import OidcClient
from hub.auth.passwords import PasswordHasher
from hub.auth.sessions import Sessions
from hub.http.template_urls import TemplateFetcher
from hub.program.loops import Loops
from hub.program.slack import slack_hooks
from hub.program.wiring import new_secret
from hub.settings.settings import Settings


def make_cell(
    name: str,
    settings: Settings,
    loops: Loops,
    hasher: PasswordHasher,
    limits: RequestLimits,
    sessions: Sessions,
    fetcher: TemplateFetcher,
    oidc: OidcClient | None = None,
) -> Cell:
    """name: "" if the process has one database. limits: of the process."""
    context = AppContext(
        oidc=oidc,
        engine=loops.engine,
        database=loops.database,
        lists=loops.lists,
        settings=settings,
        feed=loops.feed,
        dispatcher=loops.delivery.dispatcher,
        channels=loops.delivery.channels,
        horizon=loops.delivery.horizon,
        sent_notifications=gathered_notifications(loops.database),
        hook_tokens=loops.hook_tokens,
        token_keys=loops.token_keys,
        signal_urls=loops.signal_urls,
        servers=loops.servers,
        new_id=uuid4,
        new_secret=new_secret,
        random_bytes=secrets.token_bytes,
        fetch_template=fetcher.fetch,
        metrics=loops.metrics,
        hasher=hasher,
        observation_credentials=loops.authenticator.observation_credentials,
        slack=slack_hooks(settings, loops),
    )
    admission = Admission(Gatekeeper(loops.authenticator, limits), sessions)
    costly = CostlyRequests(settings.database.pool, settings.server.waiting_per_user)
    return Cell(name, context, admission, costly)


def make_moving_cell(cell: Cell, loops: Loops, database: Database) -> Cell:
    """The same cell, which reads a project that moves. database: of the schema with its rows. Its
    feed has the events so far; no others occur meanwhile."""
    lists = ReadDatabase(database)
    context = replace(
        cell.context,
        engine=loops.make_reading_engine(database, lists),
        database=database,
        lists=lists,
        feed=Feed(database, backlog=lists),
        sent_notifications=gathered_notifications(database),
    )
    return replace(cell, context=context)
