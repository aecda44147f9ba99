"""The errors for objects that do not exist, or that belong to another project.

place: the name of the path parameter, query parameter or key that names the object.
"""

from collections.abc import Collection
from uuid import UUID

from engine.errors import NotFound, nearest


def no_stack(name_or_id: str | UUID, known: Collection[str] = ()) -> NotFound:
    """known: names of stacks of the project."""
    return NotFound(
        f"The Stack ({name_or_id}) could not be found.",
        place="stack",
        remedy=nearest(str(name_or_id), sorted(known))
        or "GET .../stacks lists the stacks of the project.",
        code="EntityNotFound",
    )


def no_resource(name: str, stack: str | UUID, known: Collection[str] = ()) -> NotFound:
    """known: the names of the resources of the stack."""
    return NotFound(
        f"The Resource ({name}) could not be found in Stack {stack}.",
        place="resource",
        remedy=nearest(name, sorted(known))
        or "GET .../resources lists the resources of the stack.",
        code="ResourceNotFound",
    )


def no_event(event_id: str | UUID) -> NotFound:
    return NotFound(
        f"No event {event_id} found",
        place="event",
        remedy="GET .../events lists the retained events of the stack.",
        code="HTTPNotFound",
    )


def no_snapshot(snapshot_id: str | UUID) -> NotFound:
    return NotFound(
        f"Snapshot with id {snapshot_id} not found",
        place="snapshot",
        remedy="GET .../snapshots lists the snapshots of the stack.",
        code="SnapshotNotFound",
    )


def no_version(number: str | int) -> NotFound:
    return NotFound(
        f"there is no version {number}",
        place="version",
        remedy="GET .../versions lists the retained versions.",
        code="VersionNotFound",
    )


def no_hook(hook_id: str | UUID) -> NotFound:
    return NotFound(
        f"there is no hook {hook_id}",
        place="hook",
        remedy="GET .../hooks lists the hooks of the project.",
        code="HookNotFound",
    )


def no_breakpoint(breakpoint_id: str | UUID) -> NotFound:
    return NotFound(
        f"there is no breakpoint {breakpoint_id}",
        place="breakpoint",
        remedy="GET .../breakpoints lists the breakpoints of the stack.",
        code="BreakpointNotFound",
    )


def no_config(config_id: str | UUID) -> NotFound:
    return NotFound(
        f"Software config with id {config_id} not found",
        place="config",
        remedy="GET .../software_configs lists the configs of the project.",
        code="NotFound",
    )


def no_deployment(deployment_id: str | UUID) -> NotFound:
    return NotFound(
        f"Deployment with id {deployment_id} not found",
        place="deployment",
        remedy="GET .../software_deployments lists the deployments of the project.",
        code="NotFound",
    )


def no_token(token_id: str | UUID) -> NotFound:
    return NotFound(
        f"there is no token {token_id} to revoke",
        place="token",
        remedy="GET .../tokens lists the tokens of the project.",
        code="TokenNotFound",
    )


def no_subscription(subscription_id: str | UUID) -> NotFound:
    return NotFound(
        f"there is no subscription {subscription_id}",
        place="subscription",
        remedy="GET .../subscriptions lists the subscriptions of the project.",
        code="SubscriptionNotFound",
    )


def no_delivery(delivery_id: str | UUID) -> NotFound:
    return NotFound(
        f"there is no delivery {delivery_id}",
        place="delivery",
        remedy="GET .../deliveries lists the deliveries of the subscription.",
        code="DeliveryNotFound",
    )
