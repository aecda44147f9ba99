"""Statements that read more rows than they return, and why; how statements are executed to count them."""

from collections.abc import Mapping

from engine.store.database import transaction_settings
from tests.support.filled_tables import LARGE

#: Statements of modules that no request, hook, delivery, transition or purge executes.
RARE: Mapping[str, str] = {
    "engine.store.embedded.": "starts the embedded server",
    "engine.store.maintenance.clock_correction.": "corrects all times after the clock was set back",
    "engine.store.maintenance.failover_losses.": "after a failover",
    "engine.store.maintenance.invariants.": "checks all rows, for headgate doctor",
    "engine.store.maintenance.monitoring.": "counts rows, for metrics",
    "engine.store.maintenance.moving_schemas.": "moves a project to another cell",
    "engine.store.maintenance.project_moves.": "moves a project to another cell",
    "engine.store.maintenance.reencryption.": "encrypts all rows with another key",
    "engine.store.maintenance.standbys.": "the state of replicas",
    "engine.store.pooler_check.": "checks the pooler at the start",
    "engine.store.replica.": "the state of a replica",
    "engine.store.schema.": "upgrades the schema at the start",
    "engine.store.server_check.": "checks the server at the start",
    "engine.store.server_connector.": "checks a new connection",
}
#: Settings of the transactions that execute statements (`Database.transaction`), by name, or of all
#: statements of a module.
BY_KEY, BY_INDEX = transaction_settings(by_key=True), transaction_settings(by_index=True)
REPLAN, PAGE = transaction_settings(replan=True), transaction_settings(replan=True, by_index=True)
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "channels.store.deliveries.LIST": PAGE,
    "channels.store.deliveries.LIST_PENDING": PAGE,
    "channels.store.stream.READ": PAGE,
    "channels.store.stream.READ_NESTED": PAGE,
    "channels.store.subscriptions.LIST": PAGE,
    "engine.store.audit.audit_log.READ_OF_PROJECT": REPLAN,
    "engine.store.hooks.deadlines.DUE_HOOKS": PAGE,
    "engine.store.hooks.deadlines.DUE_HOOKS_IN_TURN": PAGE,
    "engine.store.hooks.deadlines.DUE_REMINDERS": PAGE,
    "engine.store.hooks.deadlines.EXPIRE_HOOK": PAGE,
    "engine.store.hooks.deadlines.FAILING_NODE": PAGE,
    "engine.store.hooks.deadlines.FAIL_NODE": PAGE,
    "engine.store.hooks.deadlines.STOP_REMINDERS": PAGE,
    "engine.store.hooks.hook_lists.READ_HOOKS": PAGE,
    "engine.store.hooks.hook_lists.READ_HOOKS_OF_ALL": PAGE,
    "engine.store.hooks.hook_lists.READ_STACK_HOOKS": PAGE,
    "engine.store.hooks.locked_hooks.": BY_KEY,
    "engine.store.observer.observation_schedule.CLAIM": BY_INDEX,
    "engine.store.software.software_configs.LIST_CONFIGS": PAGE,
    "engine.store.software.software_configs.LIST_DEPLOYMENTS": REPLAN,
    "engine.store.stacks.events.LIST_EVENTS": PAGE,
    "engine.store.stacks.events.LIST_TREE_EVENTS": PAGE,
    "engine.store.stacks.stack_lists.": PAGE,
    "engine.store.stacks.stack_overview.": REPLAN,
    "engine.store.stacks.stack_tree.": BY_KEY,
    "engine.store.traversals.graph_archive.": BY_INDEX,
}
#: Expressions for parameters, by number, of statements that would find no rows with the sample ones.
_OLD: Mapping[int, str] = {1: "interval '1 hour'", 2: "now() - interval '1 day'", 3: "10"}
_REPLACED = f"""jsonb_build_array(jsonb_build_object(
    'stack_id', '{LARGE}', 'previous', '{LARGE}', 'id', gen_random_uuid(), 'notification',
    '{{}}'::jsonb, 'digest', 'd', 'reason', 'r', 'wake_after', 1))"""
_MISSING: Mapping[int, str] = {2: "array['missing']"}
_DRIFTED: Mapping[int, str] = {
    **_MISSING, 3: "array['UPDATE']", 4: "null::text[]", 5: "null::uuid[]",
}  # fmt: skip
ARGUMENTS: Mapping[str, Mapping[int, str]] = {
    "engine.store.maintenance.retention.PURGE_DELIVERIES": _OLD,
    "engine.store.maintenance.retention.PURGE_HOOKS": _OLD,
    "engine.store.maintenance.retention.PURGE_KEYS": _OLD,
    "engine.store.maintenance.retention.PURGE_SESSIONS": _OLD,
    "engine.store.maintenance.retention.PURGE_TRAVERSALS": _OLD,
    "engine.store.maintenance.retention.PURGE_AUDIT_LOGS": _OLD,
    "engine.store.hooks.locked_hooks.DECIDE_HOOKS": {1: "'[]'::jsonb"},
    "engine.store.hooks.watched_hooks.REPLACE": {1: _REPLACED},
    "engine.store.hooks.drift_hooks.READ_APPROVED": _MISSING,
    "engine.store.hooks.drift_hooks.MARK_APPROVED": _DRIFTED,
    "engine.store.observer.drift_rows.MARK_DRIFTED": _DRIFTED,
    "engine.store.observer.drift_rows.MARK_REPORTED": {**_DRIFTED, 6: "interval '0'"},
    "engine.store.observer.drift_rows.READ_MARKS": _DRIFTED,
    "engine.store.observer.drift_rows.READ_UNOBSERVED": _DRIFTED,
    "engine.store.observer.drift_rows.RECORD_UNREPAIRED": {3: "false", 4: "null::uuid[]"},
    "engine.store.observer.drift_rows.REPAIRABLE": {
        2: "array[interval '0']",
        3: "array['missing']",
    },
    "engine.store.traversals.advance.ADVANCE": {4: "'[]'::jsonb"},
}
#: The sample arguments name rows that exist.
_INSERTS = "inserts rows that it is given"
#: Statements that fail with sample arguments, and why. None of them searches a large table.
NOT_EXECUTED: Mapping[str, str] = {
    "accept_change 13": _INSERTS,
    "accept_change 14": "reads a document",
    "add_nodes 1": "reads a document",
    "add_nodes 2": _INSERTS,
    "advance 14": "reads a document",
    "advance 16": "reads a document",
    "channels.store.subscription_events.RECORD": _INSERTS,
    "channels.store.subscriptions.INSERT": _INSERTS,
    "complete_traversals 7": _INSERTS,
    "complete_traversals 8": _INSERTS,
    "engine.store.access.tokens.CREATE": _INSERTS,
    "engine.store.audit.audit_log.INSERT": _INSERTS,
    "engine.store.audit.checkpoints.INSERT": _INSERTS,
    "engine.store.database.SET": "needs the name of a setting",
    "engine.store.hooks.breakpoints.INSERT": _INSERTS,
    "engine.store.hooks.drift_hooks.OPEN": _INSERTS,
    "engine.store.read_database.SET": "needs the name of a setting",
    "engine.store.resources.resource_signals.INSERT": _INSERTS,
    "engine.store.software.software_configs.INSERT_CONFIG": _INSERTS,
    "engine.store.software.software_configs.INSERT_DEPLOYMENT": _INSERTS,
    "engine.store.stacks.snapshots.INSERT_NESTED_SNAPSHOT": _INSERTS,
    "engine.store.stacks.snapshots.INSERT_SNAPSHOT": _INSERTS,
    "engine.store.traversals.nested_stacks.INSERT_NESTED_STACK": _INSERTS,
    "publish_outbox 12": _INSERTS,
    "record_events 8": _INSERTS,
    "record_numbered_events 3": _INSERTS,
    "start_traversal 5": _INSERTS,
    "start_traversal 9": _INSERTS,
    "start_traversal 11": _INSERTS,
}
_FILTER = "rows of a stack by a condition that no index has"
_GRAPH = "nodes of a traversal by their state"
_NAMES = "resources of a stack by name, of which statistics say that stacks have few"
_OPERATING = "nodes of a traversal that operate now"
_TREE = "rows of a stack tree by a condition that no index has"
#: Statements that may read all rows of one stack, or of a stack tree, in the tables that they name.
OF_A_STACK: Mapping[str, str] = {
    "channels.store.stream.READ_NESTED": "merges the events of a stack tree by time",
    "engine.store.audit.audit_log.PROJECTS": "counts the projects of all entries of a stack",
    "engine.store.audit.audit_log.READ_OF_PROJECT": "entries of a project by their author",
    "engine.store.audit.audit_log.WITHOUT_ENTRY": "verifies the audit log of a stack",
    "engine.store.hooks.adoptions.READ": "drift of a stack by its hook",
    "engine.store.hooks.adoptions.WRITE": _FILTER,
    "engine.store.hooks.breakpoints.DELETE": _FILTER,
    "engine.store.hooks.drift_hooks.CLOSE": "drift of a stack, all of it or by resource",
    "engine.store.hooks.drift_hooks.MARK_APPROVED": _TREE,
    "engine.store.hooks.drift_hooks.READ": "drift of a stack with its hooks",
    "engine.store.hooks.drift_hooks.READ_APPROVED": _TREE,
    "engine.store.hooks.drift_hooks.RECORD_ANSWERS": "drift of a stack by its hook",
    "engine.store.hooks.drift_hooks.RECORD_DIGESTS": "drift of a stack by its hook",
    "engine.store.hooks.hook_lists.READ_LATEST": "hooks of a stack by resource",
    "engine.store.hooks.locked_hooks.FIND_WAITING_HOOK": "waiting hooks of a stack by resource",
    "engine.store.hooks.step_modes.CLEAR_ALL": _GRAPH,
    "engine.store.hooks.watched_hooks.READ_WATCHED": "waiting hooks of a stack with a watch",
    "engine.store.hooks.watched_hooks.RECORD_DIGESTS": _FILTER,
    "engine.store.observer.completions.COMPLETE": _FILTER,
    "engine.store.observer.drift_rows.MARK_DRIFTED": _TREE,
    "engine.store.observer.drift_rows.MARK_REPORTED": _TREE,
    "engine.store.observer.drift_rows.READ_DRIFT": _TREE,
    "engine.store.observer.drift_rows.READ_MARKS": _TREE,
    "engine.store.observer.drift_rows.READ_UNOBSERVED": _TREE,
    "engine.store.observer.drift_rows.RECORD_UNREPAIRED": _FILTER,
    "engine.store.observer.drift_rows.REPAIRABLE": _TREE,
    "engine.store.observer.drift_rows.REPORT": "the drift of a stack",
    "engine.store.observer.drift_rows.UNREPORTED": _FILTER,
    "engine.store.observer.observations.READ_PAGE": "the resources of a stack that can be observed",
    "engine.store.observer.provider_endpoints.READ_PAUSED": _TREE,
    "engine.store.observer.repair_scope.READ_SCOPE": _TREE,
    "engine.store.observer.waiting_repairs.READ_OBSERVED": _TREE,
    "engine.store.resources.current_resources.READ_CONCERNED": _OPERATING,
    "engine.store.resources.current_resources.READ_CURRENT": _OPERATING,
    "engine.store.resources.current_resources.READ_SETTLED": _OPERATING,
    "engine.store.resources.overrides.READ_ENDED": _FILTER,
    "engine.store.resources.overrides.READ_OVERRIDES": _FILTER,
    "engine.store.resources.overrides.READ_TREE_OVERRIDES": _TREE,
    "engine.store.resources.resource_reads.READ_NODES": "what a node waits for and reads",
    "engine.store.resources.resource_reads.READ_PLANNED": _NAMES,
    "engine.store.resources.resource_reads.READ_VALUES": _NAMES,
    "engine.store.resources.resource_rows.EXISTING_NAMES": _NAMES,
    "engine.store.resources.resource_rows.FIND_RESOURCE": "a resource by name or physical ID",
    "engine.store.resources.resource_rows.REMOVE_REQUIREMENTS": _FILTER,
    "engine.store.resources.resource_signals.FIND_TARGET": _NAMES,
    "engine.store.resources.resource_signals.WAKE": _OPERATING,
    "engine.store.resources.scaling.READ_GROUP": "a resource by its physical ID",
    "engine.store.resources.scaling.READ_PROPERTIES_BY_REFERENCE": "a resource by its physical ID",
    "engine.store.software.deployment_resources.OPERATION": _OPERATING,
    "engine.store.stacks.events.LIST_TREE_EVENTS": _TREE,
    "engine.store.stacks.stack_dependencies.CHECK_SOURCES": "the stacks of a stack tree",
    "engine.store.stacks.stack_dependencies.READ_READING_VERSIONS": "the stacks of a stack tree",
    "engine.store.stacks.stack_rows.DELETE_ROWS": "deletes the rows of a stack",
    "engine.store.traversals.end.CANCEL_OPERATIONS": _GRAPH,
    "engine.store.traversals.end.FAILED_NODES": _GRAPH,
    "engine.store.traversals.end.MOVE_NODES": _GRAPH,
    "engine.store.traversals.end.NODE_KINDS": _GRAPH,
    "engine.store.traversals.end.WAKE_WAITING": _GRAPH,
    "engine.store.traversals.graphs.READ_EARLIER_TRAVERSAL": "the traversals of a stack tree",
    "engine.store.traversals.nested_stacks.READ_MEMBERS": "the members of a group",
    "engine.store.traversals.start.SET_SUCCESSORS": _FILTER,
    "engine.store.traversals.start.STORE_LABELS": _FILTER,
    "engine.store.traversals.start.STORE_RULES": _FILTER,
    "time_labelled_work 1": "the labels of a traversal",
}
_METRICS = "counts rows, for metrics"
_PROJECT = "the stacks of a project by a condition that no index has"
_SIGNS = "signs the audit logs of all stacks"
_TURN = "one row of each project"
_TOKENS = "all tokens, which are few"
_USAGE = "adds up what a day has used"
#: Statements that may read the rows of many stacks, or a whole table.
OF_MANY: Mapping[str, str] = {
    "channels.store.backlog.DISABLE_OVER_LIMIT": "one look at each enabled subscription",
    "channels.store.backlog.PENDING": _METRICS,
    "channels.store.backlog.UNPUBLISHED": _METRICS,
    "channels.store.deliveries.REDELIVER": "the deliveries of a subscription by their state",
    "channels.store.publish.READ_SINCE": "reads all events since a time, for a redelivery",
    "channels.store.subscriptions.IN_STATE": "the subscriptions of a project by their state",
    "channels.store.subscriptions.LOCK_CONFIGURED": "at the start: those of the settings",
    "channels.store.subscriptions.RELEASE_HELD": "the pending deliveries of a subscription",
    "channels.store.undeliverable.OF_DISABLED": "the deliveries of disabled subscriptions",
    "engine.store.audit.audit_log.STACKS": _SIGNS,
    "engine.store.audit.checkpoints.UNSIGNED": _SIGNS,
    "engine.store.hooks.deadlines.DUE_HOOKS_IN_TURN": _TURN,
    "engine.store.hooks.hook_lists.READ_HOOKS_OF_ALL": _TURN,
    "engine.store.maintenance.processes.READ_UNSERVED_LABELS": "one row of each label",
    "engine.store.maintenance.retention.NEXT_REVOKED": _TOKENS,
    "engine.store.maintenance.retention.PURGE_STACKS": "the queue of the archive is short",
    "engine.store.maintenance.retention.PURGE_TOKENS": _TOKENS,
    "engine.store.observer.converge_requests.READ_PENDING": "a page of all pending requests",
    "engine.store.observer.converge_requests._COLUMNS": "a part of other statements",
    "engine.store.observer.observation_schedule.CLAIM": _TURN,
    "engine.store.observer.observation_schedule.NEXT_DUE": _TURN,
    "engine.store.observer.observation_schedule.SCHEDULE_PROJECT": "a page of a project's stacks",
    "engine.store.observer.provider_endpoints.COUNT_PAUSED": _METRICS,
    "engine.store.projects.cells.LIST_PROJECTS": "the projects of a cell",
    "engine.store.projects.quotas.RESOURCES": "stops at the quota",
    "engine.store.projects.quotas.STACKS": "stops at the quota",
    "engine.store.projects.usage.COMPUTE": _USAGE,
    "engine.store.projects.usage.ROLL_UP": _USAGE,
    "engine.store.projects.usage.SAMPLE": _USAGE,
    "engine.store.projects.usage.TODAY": _METRICS,
    "engine.store.software.server_resources.FIND_BY_SERVER": "the deployments of a project",
    "engine.store.stacks.stack_lists.NEWEST_OF_ALL": _TURN,
    "engine.store.stacks.stack_lists.OLDEST_OF_ALL": _TURN,
    "engine.store.stacks.stack_lists.SORTED": "list_stacks refuses it for more than MAX_SORTED_STACKS",
    "engine.store.stacks.stack_lists.TOTAL": "counts all stacks, for with_count",
    "engine.store.stacks.stack_locks.LOCK_NAMED": _PROJECT,
    "engine.store.stacks.stack_locks.LOCK_TREES": _PROJECT,
    "engine.store.stacks.stack_overview.COUNT": _PROJECT,
    "engine.store.stacks.stack_overview.READ": _PROJECT,
    "engine.store.stacks.stack_search.WITH_NAMES": _PROJECT,
}
