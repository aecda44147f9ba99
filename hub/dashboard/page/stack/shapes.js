/**
 * The shapes of what the page of a stack shows.
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
 * @property {string | null} root the outermost stack around it
 * @property {string} path from there
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
 * @typedef {{path: string, point: string, reason: string}} Late a breakpoint that has no effect there
 *
 * @typedef {{path: string, state: string, sentence: string}} Reason
 *
 * @typedef {object} Inspected a resource, as somebody who looks at it wants it
 * @property {{action: string, status: string, reason: string, protected: boolean,
 *   deletion_policy: string} | null} status null: it is yet to be
 * @property {string | null} physical_id
 * @property {Record<string, unknown>} properties
 * @property {Record<string, unknown>} attributes
 * @property {Record<string, unknown>} metadata
 * @property {{id: string, name: string} | null} inside the stack that it holds
 * @property {InspectedNode[]} nodes
 * @property {Held[]} breakpoints
 * @property {import("../api/documents.js").Hook[]} hooks the latest ones
 *
 * @typedef {object} InspectedNode
 * @property {number} id
 * @property {string} state
 * @property {string[]} waiting_for
 * @property {Record<string, unknown> | null} properties that it wants
 * @property {Record<string, import("../api/documents.js").Change> | null} changes
 *
 * @typedef {{point: string, source: string, id: string | null, created_by: string | null}} Held
 *
 * @typedef {object} Gone
 * @property {"deleted" | "forgotten" | "missing"} how
 * @property {string} by empty: not known
 * @property {string | null} at
 */

export {};
