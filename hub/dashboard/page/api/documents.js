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
 * @property {string} on_timeout
 * @property {Decision[]} allowed
 * @property {string} digest
 * @property {{needed: number, given: number}} approvals
 * @property {number} node of the graph, in its stack
 * @property {object | null} ask a schema of what goes with an answer
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
