/**
 * The shapes of the API's documents, as far as pages look at them; /openapi.json has them whole.
 *
 * @typedef {"continue" | "reject" | "step" | "run" | "patch" | "progress"} Decision
 *
 * @typedef {object} Hook
 * @property {string} id
 * @property {string} stack_id
 * @property {string} stack_name
 * @property {string} root_stack_id
 * @property {string} root_stack_name
 * @property {string | null} resource_name null: of the stack as a whole
 * @property {string} path
 * @property {string} point
 * @property {"wait" | "notify" | "stop"} mode
 * @property {"waiting" | "answered" | "expired" | "superseded"} state
 * @property {string} opened_at
 * @property {string} deadline
 * @property {"stop" | "continue" | "reject"} on_timeout
 * @property {Decision[]} allowed
 * @property {string} digest
 * @property {number} node of the graph, in its stack
 * @property {{needed: number, given: number, by: string[]}} approvals
 * @property {string[]} answer_by empty: anybody
 * @property {string} exclude
 * @property {Schema | null} ask
 * @property {string[]} patch
 * @property {boolean} dry
 * @property {string} requested_by
 * @property {string | null} assigned
 * @property {number} reminders
 * @property {string | null} escalated_at
 * @property {Record<string, unknown>} answers by RESOURCE:POINT
 * @property {Asked[]} asked
 * @property {NoticedResource | null} resource
 * @property {NoticedChange} [change] of the stack as a whole
 * @property {string | null} [decision] from here on: once it waits no more
 * @property {string | null} [reason]
 * @property {string | null} [decided_by]
 * @property {string | null} [door]
 * @property {string | null} [decided_at]
 *
 * @typedef {object} Asked whom a hook's notice goes to, and how far it has come
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
 *
 * @typedef {object} NoticedChange
 * @property {string} action
 * @property {number} version
 * @property {string} requested_by
 * @property {Record<string, unknown>} parameters
 * @property {string[]} tags
 * @property {{name: string, type?: string, operation?: string}[]} plan
 *
 * @typedef {object} Entry something that was said to a hook, as the trail has it
 * @property {number} number
 * @property {string} kind
 * @property {string} by
 * @property {string} door
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
 * @property {string} [subject] path of the resource from the outermost stack
 * @property {string} [rootstack]
 * @property {string} [stackpath]
 * @property {any} data
 */

export {};
