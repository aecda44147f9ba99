"""The AsyncAPI 3.0 document: which events go out over which channel, and how answers come in.

Written from the same table of schemas that the tests hold real traffic against.
"""

from collections.abc import Iterable, Mapping

from channels.envelope import CONTENT_TYPE
from channels.schemas.events import SCHEMAS
from engine.words import Decision, Json

_ANSWER: Json = {
    "type": "object",
    "required": ["decision"],
    "additionalProperties": False,
    "properties": {
        "decision": {"enum": [one.value for one in Decision]},
        "reason": {"type": "string", "maxLength": 4000},
        "digest": {"type": "string"},
        "data": {},
        "properties": {"type": ["object", "null"]},
        "extend": {"type": "string", "description": "Of a progress: 30m, 2h or 1d."},
    },
}
_ANSWER_BY_MESSAGE: Json = {
    **_ANSWER,
    "required": ["decision", "token"],
    "properties": {**_ANSWER["properties"], "token": {"type": "string", "minLength": 1}},
}
_WAYS: Mapping[str, Json] = {
    "webhook": {
        "title": "Webhooks",
        "description": "A POST to the target of each subscription, signed as Standard Webhooks.",
        "address": None,
    },
    "stream": {
        "title": "Event stream",
        "description": "Server-sent events, resumed with Last-Event-ID.",
        "address": "/v1/{project}/events/stream",
        "parameters": {"project": {"description": "The project whose events are wanted."}},
    },
    "amqp": {
        "title": "AMQP",
        "description": "Persistent messages to the exchange that a subscription names.",
        "address": "{type}.{project}.{stack}",
        "parameters": {
            "type": {"description": "The type of the event."},
            "project": {"description": "Dots are written as underscores."},
            "stack": {"description": "The stack's name; dots are written as underscores."},
        },
        "bindings": {
            "amqp": {
                "is": "routingKey",
                "exchange": {"name": "headgate", "type": "topic", "durable": True},
            }
        },
    },
}


def asyncapi(answers: str) -> dict[str, Json]:
    """answers: the name of the queue that they come in."""
    names = {kind: kind.replace(".", "_").replace("-", "_") for kind in SCHEMAS}
    messages = {
        names[kind]: {
            "name": kind,
            "title": schema["title"],
            "contentType": CONTENT_TYPE,
            "payload": {key: value for key, value in schema.items() if key != "$schema"},
        }
        for kind, schema in SCHEMAS.items()
    }
    messages["answer"] = {
        "name": "answer",
        "title": "An answer to a hook, with the token of its notice",
        "contentType": "application/json",
        "correlationId": {"location": "$message.header#/correlation_id"},
        "payload": _ANSWER_BY_MESSAGE,
    }
    messages["answer_at_once"] = {
        "name": "answer_at_once",
        "title": "An answer in the response to a notification; an empty one is not an answer",
        "contentType": "application/json",
        "payload": _ANSWER,
    }
    channels = {name: way | {"messages": _refs(names.values())} for name, way in _WAYS.items()}
    channels["answers"] = {
        "title": "Answers over AMQP",
        "description": "correlation_id is the id of the hook.",
        "address": answers,
        "messages": _refs(["answer"]),
        "bindings": {"amqp": {"is": "queue", "queue": {"name": answers, "durable": True}}},
    }
    channels["webhook"]["messages"] |= _refs(["answer_at_once"])
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Headgate",
            "version": "1",
            "description": "Every event is a CloudEvent 1.0 in structured mode.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": CONTENT_TYPE,
        "channels": channels,
        "operations": _operations(list(names.values())),
        "components": {"messages": messages},
    }


def _refs(names: Iterable[str]) -> dict[str, Json]:
    return {name: {"$ref": f"#/components/messages/{name}"} for name in names}


def _operations(events: list[str]) -> dict[str, Json]:
    def on(channel: str, action: str, names: list[str]) -> dict[str, Json]:
        return {
            "action": action,
            "channel": {"$ref": f"#/channels/{channel}"},
            "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in names],
        }

    told = on("webhook", "send", events)
    told["reply"] = {
        "channel": {"$ref": "#/channels/webhook"},
        "messages": [{"$ref": "#/channels/webhook/messages/answer_at_once"}],
    }
    return {
        "tell_by_webhook": told,
        "tell_by_stream": on("stream", "send", events),
        "tell_by_amqp": on("amqp", "send", events),
        "take_answers": on("answers", "receive", ["answer"]),
    }
