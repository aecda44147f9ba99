/**
 * Types of the API's documents, with the fields that the page uses; see /openapi.json for all.
 *
 * @typedef {"continue" | "reject" | "step" | "run" | "patch" | "progress" | "adopt" | "repair" | "ignore"} Decision
 *
 * @typedef {object} Hook
 * @property {string} id
 * @property {string} stack_id
 * @property {string} stack_name
 * @property {string} root_stack_id
 * @property {string} root_stack_name
 * @property {string | null} resource_name null: a hook of the whole stack
 * @property {string} path
 * @property {string} point
 * @property {"wait" | "notify" | "stop"} mode
 * @property {"waiting" | "answered" | "expired" | "superseded"} state
 * @property {string} opened_at
 * @property {string | null} deadline null: a hook about drift
 * @property {"stop" | "continue" | "reject"} on_timeout
 * @property {Decision[]} allowed
 * @property {string} digest
 * @property {number | null} node node ID in the graph of its stack; null: a hook about drift
 * @property {{needed: number, given: number, by: string[]}} approvals
 * @property {string[]} answer_by empty: anyone in the project
 * @property {string} exclude
 * @property {Schema | null} ask
 * @property {string[]} patch
 * @property {boolean} dry
 * @property {string} requested_by
 * @property {string | null} assigned
 * @property {number} reminders
 * @property {string | null} escalated_at
 * @property {Record<string, unknown>} answers by RESOURCE:POINT
 * @property {HookNotification[]} asked
 * @property {NoticedResource | null} resource
 * @property {NoticedChange} [change] only for a hook of the whole stack
 * @property {string | null} [decision] this and the following: once the hook has ended
 * @property {string | null} [reason]
 * @property {string | null} [decided_by]
 * @property {string | null} [channel]
 * @property {string | null} [decided_at]
 *
 * @typedef {object} HookNotification a notification of a hook and its state
 * @property {string} subscription
 * @property {string} channel
 * @property {string} target
 * @property {"pending" | "delivered" | "dead"} state
 * @property {number} attempts
 * @property {number | null} code
 * @property {string | null} error
 * @property {string | null} next_at
 *
 * @typedef {{from?: unknown, to?: unknown}} Change
 *
 * @typedef {object} NoticedResource
 * @property {string} name
 * @property {string | null} type
 * @property {string | null} physical_id
 * @property {string | null} operation
 * @property {Record<string, unknown>} properties
 * @property {Record<string, Change>} changes
 * @property {string[]} dependents
 * @property {Record<string, unknown>} seen
 * @property {HookDrift | null} [drift] of a hook about drift, or what has changed while it waited
 * @property {{times: number, previous: string, reason: string} | null} [renewed]
 *
 * @typedef {{path: string, desired: unknown, observed: unknown}} HookDifference
 * @typedef {{state: string, reason: string, since: string, differences: HookDifference[]}} HookDrift
 *
 * @typedef {object} NoticedChange
 * @property {string} action
 * @property {number} version
 * @property {string} requested_by
 * @property {Record<string, unknown>} parameters
 * @property {string[]} tags
 * @property {{name: string, type?: string, operation?: string}[]} plan
 *
 * @typedef {object} Entry an audit entry of a hook
 * @property {number} number
 * @property {string} kind
 * @property {string} by
 * @property {string} channel
 * @property {string} at
 * @property {string} reason
 * @property {any} data
 *
 * @typedef {{[key: string]: any}} Schema a JSON schema
 *
 * @typedef {object} CloudEvent
 * @property {string} id
 * @property {string} type
 * @property {string} source
 * @property {string} time
 * @property {number} sequence
 * @property {string} [subject] path of the resource from the root stack
 * @property {string} [rootstack]
 * @property {string} [stackpath]
 * @property {any} data
 */

export {};
