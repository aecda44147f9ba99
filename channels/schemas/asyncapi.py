"""The AsyncAPI 3.0 document: the events of each channel, and the messages that answer hooks.

Generated from the schemas against which the tests validate real traffic.
"""

from collections.abc import Iterable, Mapping

from channels.envelope import CONTENT_TYPE
from channels.schemas.event_schemas import SCHEMAS
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
        "extend": {
            "type": "string",
            "description": "With the decision progress: a duration such as 30m, 2h or 1d.",
        },
    },
}
_ANSWER_BY_MESSAGE: Json = {
    **_ANSWER,
    "required": ["decision", "token"],
    "properties": {**_ANSWER["properties"], "token": {"type": "string", "minLength": 1}},
}
_CHANNELS: Mapping[str, Json] = {
    "webhook": {
        "title": "Webhooks",
        "description": "Signed POSTs (Standard Webhooks) to the targets of subscriptions.",
        "address": None,
    },
    "stream": {
        "title": "Event stream",
        "description": "Server-sent events, resumed with Last-Event-ID.",
        "address": "/v1/{project}/events/stream",
        "parameters": {"project": {"description": "The project of the events."}},
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
    """answers: the name of the queue that receives answers."""
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
        "title": "An answer to a hook, with the token of its notification",
        "contentType": "application/json",
        "correlationId": {"location": "$message.header#/correlation_id"},
        "payload": _ANSWER_BY_MESSAGE,
    }
    messages["answer_in_response"] = {
        "name": "answer_in_response",
        "title": "An optional answer to a hook, in the response to its notification",
        "contentType": "application/json",
        "payload": _ANSWER,
    }
    channels = {
        name: channel | {"messages": _refs(names.values())} for name, channel in _CHANNELS.items()
    }
    channels["answers"] = {
        "title": "Answers over AMQP",
        "description": "The correlation_id is the ID of the hook.",
        "address": answers,
        "messages": _refs(["answer"]),
        "bindings": {"amqp": {"is": "queue", "queue": {"name": answers, "durable": True}}},
    }
    channels["webhook"]["messages"] |= _refs(["answer_in_response"])
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

    send_webhook = on("webhook", "send", events)
    send_webhook["reply"] = {
        "channel": {"$ref": "#/channels/webhook"},
        "messages": [{"$ref": "#/channels/webhook/messages/answer_in_response"}],
    }
    return {
        "send_webhook": send_webhook,
        "send_stream": on("stream", "send", events),
        "send_amqp": on("amqp", "send", events),
        "receive_answers": on("answers", "receive", ["answer"]),
    }
