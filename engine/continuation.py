"""The request that continues an action that was stopped or has failed, in words."""

from collections.abc import Mapping

from engine.words import Action

_UPDATE = "update the stack"
_REQUESTS: Mapping[Action, str] = {
    Action.DELETE: "delete the stack again",
    Action.CHECK: "check the stack again",
    Action.SUSPEND: "suspend the stack again",
    Action.RESUME: "resume the stack again",
    Action.SNAPSHOT: "take a snapshot again",
}


def continuing_request(action: Action) -> str:
    """For a root stack. An update continues each action that has a template version as its target;
    a delete that does not complete keeps what is left of the stack."""
    return _REQUESTS.get(action, _UPDATE)


def stopped_reason(why: str, action: Action, *, nested: bool = False) -> str:
    """The reason of a stack that is STOPPED. nested: the stack has a parent."""
    if nested:
        return f"Stopped: {why}; its root stack says how to continue"
    return f"Stopped: {why}; {continuing_request(action)} to continue"
