"""Answers by buttons in Slack: for one database, or for those of several cells."""

from functools import partial

from channels.chat.channel import HttpSender
from channels.chat.slack_interaction import ButtonValue
from engine.errors import NotFound, Unavailable
from engine.loop_guard import Supervisor
from engine.store.database import Database
from hub.api.cell_search import find_in_cells
from hub.api.cells import Cell, Cells, naming_cell, refuse_moving, unavailable
from hub.api.slack_answers import ClickedHook, SlackAnswers, SlackHooks, SlackRules
from hub.auth.slack_users import SlackUser, SlackUsers
from hub.program.loops import Loops
from hub.program.wiring import secret_in
from hub.settings.settings import Settings


def make_slack_answers(
    settings: Settings, cells: Cells, http: HttpSender, supervisor: Supervisor
) -> SlackAnswers | None:
    """None: messages in Slack have no buttons that answer. Raises Unavailable."""
    rules = _slack_rules(settings)
    if rules is None:
        return None
    return SlackAnswers(rules, partial(_find_hook, cells), http, supervisor)


async def _find_hook(cells: Cells, value: ButtonValue) -> ClickedHook | None:
    """The hook of a button, in the cell that has it. All cells are asked at once: a button names no
    project, and the hook moves with its project. None: this server did not make the button. Raises
    NotFound, Unavailable."""
    missing: list[NotFound] = []

    async def ask(cell: Cell) -> ClickedHook | None:
        if cell.context.slack is None:
            return None
        try:
            with naming_cell(cell.name):
                return await cell.context.slack.find(value)
        except NotFound as error:
            missing.append(error)
            return None

    search = await find_in_cells({one.name: partial(ask, one) for one in cells.reachable()})
    if search.found is not None:
        return search.found
    if away := [*cells.away(), *search.away]:
        raise unavailable(away)
    if cells.moving():
        raise refuse_moving("")
    if missing:
        raise missing[0]
    return None


def slack_hooks(settings: Settings, loops: Loops) -> SlackHooks | None:
    """None: messages in Slack have no buttons that answer."""
    if not settings.channels.slack.signing_secret_file:
        return None
    return SlackHooks(
        _slack_users(settings, loops.database),
        loops.engine.hooks,
        partial(loops.engine.reads.hook, project=None),
        loops.hook_tokens,
    )


def _slack_rules(settings: Settings) -> SlackRules | None:
    """None: messages in Slack have no buttons that answer. Raises Unavailable."""
    slack = settings.channels.slack
    place = "[channels.slack] signing_secret_file"
    remedy = "Write the signing secret of the app in Slack into it, readable by the server."
    secret = secret_in(slack.signing_secret_file, place, remedy)
    if not slack.signing_secret_file:
        return None
    if not secret:
        raise Unavailable(f"{slack.signing_secret_file} is empty", place=place, remedy=remedy)
    return SlackRules(
        secret,
        slack.team,
        {one.id for one in slack.users},
        slack.hosts,
        settings.server.base_url().rstrip("/"),
    )


def _slack_users(settings: Settings, database: Database) -> SlackUsers:
    users = {
        one.id: SlackUser(one.user, one.roles, one.projects, one.domain)
        for one in settings.channels.slack.users
    }
    auth = settings.auth
    return SlackUsers(database, users, mode=auth.mode, issuer=auth.oidc.issuer)
