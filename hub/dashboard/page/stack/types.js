/**
 * Types of the stack page.
 *
 * @typedef {object} Stack
 * @property {string} id
 * @property {string} stack_name
 * @property {string} stack_status
 * @property {string} stack_status_reason
 * @property {string | null} description
 * @property {string} creation_time
 * @property {string | null} updated_time
 * @property {string | null} deletion_time
 * @property {string[] | null} tags
 * @property {string | null} root ID of the root stack
 * @property {string} path from the root stack
 * @property {Output[]} [outputs]
 * @property {{by: string, reason: string} | null} pinned
 *
 * @typedef {{output_key: string, output_value: unknown, description: string, output_error?: string}} Output
 *
 * @typedef {object} Traversal
 * @property {number} number
 * @property {string} action
 * @property {string} state
 * @property {string} reason
 * @property {number} version
 * @property {string} requested_by
 * @property {number} worked_seconds
 * @property {string} started_at
 * @property {string | null} ended_at
 *
 * @typedef {{id: string, at: string, on: string, rule: Record<string, unknown>, created_by: string,
 *   created_at: string}} Breakpoint set on the live stack
 * @typedef {{path: string, point: string, reason: string}} MissedBreakpoint a node that waits at the breakpoint or has passed it
 *
 * @typedef {{path: string, state: import("../graph/types.js").State, phase: import("../graph/types.js").Phase,
 *   sentence: string}} Reason
 *
 * @typedef {object} DriftedResource
 * @property {string} path from the root stack
 * @property {string} resource_name
 * @property {"missing" | "changed" | "degraded" | "unknown"} state
 * @property {{path: string, desired: unknown, observed: unknown}[]} differences
 * @property {string} reason
 * @property {string} since
 * @property {string | null} unrepaired
 * @property {string} observed_at
 * @property {"request" | "policy" | "report" | null} found_by what caused the observation
 * @property {{state: string, reason: string, since: string,
 *   differences: {path: string, desired: unknown, observed: unknown}[]} | null} last_known before the
 *   state became unknown
 *
 * @typedef {{hook_id: string, path: string, sentence: string}} HeldDrift drift with a hook that
 *   waits for an answer
 * @typedef {{sentence: string}} UnrepairedDrift drift about which no hook waits
 * @typedef {{sentence: string}} UnknownState resources whose state could not be observed
 * @typedef {{until: string, sentence: string}} PausedObservation resources that are not observed
 *   until a time
 *
 * @typedef {object} Explanation why a stack makes no progress, and about drift and observations
 * @property {Reason[]} nodes
 * @property {HeldDrift[]} drift
 * @property {UnrepairedDrift[]} unrepaired
 * @property {UnknownState[]} unknown
 * @property {PausedObservation[]} paused
 *
 * @typedef {object} ResourceDetails details of a resource
 * @property {{action: string, status: string, reason: string, protected: boolean,
 *   deletion_policy: string} | null} status null: not created yet
 * @property {string | null} physical_id
 * @property {Record<string, unknown>} properties
 * @property {Record<string, unknown>} attributes
 * @property {Record<string, unknown>} metadata
 * @property {{id: string, name: string} | null} nested_stack
 * @property {NodeDetails[]} nodes
 * @property {ResourceBreakpoint[]} breakpoints
 * @property {import("../api/documents.js").Hook[]} hooks the latest ones
 *
 * @typedef {object} NodeDetails
 * @property {number} id
 * @property {string} state
 * @property {string[]} waiting_for
 * @property {Record<string, unknown> | null} properties planned properties
 * @property {Record<string, import("../api/documents.js").Change> | null} changes
 *
 * @typedef {{point: string, source: string, id: string | null, created_by: string | null}} ResourceBreakpoint
 *
 * @typedef {object} Gone
 * @property {"deleted" | "abandoned" | "missing"} how
 * @property {string} by empty: not known
 * @property {string | null} at
 */

export {};
