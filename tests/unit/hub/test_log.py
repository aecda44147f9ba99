"""Logging: one pipeline, two formats, no secrets."""

import asyncio
import gc
import io
import json
import logging
import warnings
from collections.abc import Iterator

import asyncpg
import pytest
import structlog

from hub.log import MASK, Style, set_up_logging


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_output_has_one_line_per_event() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    log: structlog.typing.FilteringBoundLogger = structlog.get_logger("engine.work")
    log.info("hook.opened", point="pre-create", stack={"name": "web"})
    (line,) = lines(stream)
    assert line["event"] == "hook.opened"
    assert line["level"] == "info"
    assert line["logger"] == "engine.work"
    assert line["point"] == "pre-create"
    assert line["stack"] == {"name": "web"}
    assert str(line["timestamp"]).endswith("Z")


def test_loggers_of_the_standard_library_use_the_same_pipeline() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    logging.getLogger("some.library").warning("lost %s of %d", "three", 5, extra={"token": "x1"})
    (line,) = lines(stream)
    assert (line["event"], line["logger"]) == ("lost three of 5", "some.library")
    assert line["token"] == MASK


def test_a_lost_connection_to_the_database_is_one_line() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    try:
        raise asyncpg.InvalidCatalogNameError("it is gone\nDETAIL: whole")
    except asyncpg.PostgresError:
        logging.getLogger("asyncpg.pool").warning("Failed to restore", exc_info=True)
    (line,) = lines(stream)
    assert (line["event"], line["reason"]) == ("database.reconnecting", "it is gone")
    assert "exception" not in line and "Traceback" not in stream.getvalue()


@pytest.mark.parametrize(
    ("error", "event", "traced"),
    [
        (asyncpg.ConnectionDoesNotExistError("closed"), "database.connection_lost", False),
        (ConnectionResetError("reset"), "database.connection_lost", False),
        (ValueError("a bug"), "Future exception was never retrieved", True),
    ],
)
async def test_an_event_loop_error_of_a_lost_connection_is_one_line(
    error: Exception, event: str, traced: bool
) -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    future = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    del future
    gc.collect()
    (line,) = lines(stream)
    assert str(line["event"]).startswith(event)
    assert ("exception" in line) is traced


def test_context_variables_are_in_every_line() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    with structlog.contextvars.bound_contextvars(project="demo", stack="web"):
        structlog.get_logger().info("stack.started")
        logging.getLogger("some.library").error("oh")
    structlog.get_logger().info("outside")
    assert [line.get("stack") for line in lines(stream)] == ["web", "web", None]


def test_log_levels_are_kept() -> None:
    stream = io.StringIO()
    set_up_logging("json", level="warning", stream=stream)
    structlog.get_logger().info("quiet")
    logging.getLogger("some.library").info("quiet")
    structlog.get_logger().warning("loud")
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_a_second_set_up_does_not_duplicate_lines() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=io.StringIO())
    set_up_logging("json", stream=stream)
    logging.getLogger("some.library").warning("once")
    assert len(lines(stream)) == 1


def test_an_exception_keeps_its_traceback_in_one_line() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    try:
        raise KeyError("missing")
    except KeyError:
        structlog.get_logger().exception("loop.failed")
    (line,) = lines(stream)
    assert "KeyError: 'missing'" in str(line["exception"])


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize(
    "fields",
    [
        {"token": "geheim"},
        {"signal_token": "geheim"},
        {"secrets": ["geheim"]},
        {"Authorization": "geheim"},
        {"headers": {"authorization": "geheim", "X-Auth-Token": "geheim"}},
        {"answer": [{"password": "geheim"}]},
        {"signing_key": b"geheim"},
        {"url": "postgresql://headgate:geheim@db.example.org/x"},
        {"text": "sent Authorization: Bearer geheim to there"},
        {"text": "key whsec_geheim"},
        {"text": "PUT https://hub.example.org/signals/a/b?token=geheim&x=1"},
        {"error": "refused for amqp://a:geheim@broker"},
    ],
)
def test_secrets_are_not_written(style: Style, fields: dict[str, object]) -> None:
    stream = io.StringIO()
    set_up_logging(style, stream=stream)
    structlog.get_logger().info("delivery.failed", **fields)
    assert "geheim" not in stream.getvalue()
    assert MASK in stream.getvalue()


def test_a_secret_in_an_exception_is_not_written() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    try:
        raise OSError("postgresql://headgate:geheim@db.example.org/x is not there")
    except OSError:
        structlog.get_logger().exception("database.lost")
    assert "geheim" not in stream.getvalue()


def test_names_that_resemble_secrets_are_written() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    structlog.get_logger().info(
        "x", tokenizer="a", keys=2, url="http://127.0.0.1:8004/v1", author=1
    )
    (line,) = lines(stream)
    assert (line["tokenizer"], line["keys"], line["author"]) == ("a", 2, 1)
    assert line["url"] == "http://127.0.0.1:8004/v1"


def test_warnings_are_logged() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old way", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    assert "old way" in stream.getvalue()


def test_the_console_format_is_readable() -> None:
    stream = io.StringIO()
    set_up_logging("console", stream=stream)
    structlog.get_logger().info("hook.opened", point="pre-create")
    assert "hook.opened" in stream.getvalue()
    assert "point=pre-create" in stream.getvalue()


def test_auto_uses_the_console_format_on_a_terminal_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, people in ((io.StringIO(), False), (Terminal(), True)):
        set_up_logging("auto", stream=stream)
        structlog.get_logger().info("event")
        assert stream.getvalue().startswith("{") is not people


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    set_up_logging("json", level="warning", stream=stream)
    structlog.get_logger().info("event")
    logging.getLogger("some.library").info("event")
    structlog.get_logger().warning("heard")
    assert [line["event"] for line in lines(stream)] == ["heard"]
