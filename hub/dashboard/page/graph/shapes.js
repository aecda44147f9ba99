// Shapes of the documents that the graph is made of: `GET .../graph?nested=true` and events.

/**
 * @typedef {"waiting" | "ready" | "running" | "parked" | "done" | "failed" | "stopped" | "dropped"} State
 * @typedef {"pre" | "act" | "confirm" | "post"} Phase
 *
 * @typedef {object} NodeDocument
 * @property {number} id
 * @property {string} resource_name empty: the stack as a whole
 * @property {string} path from the outermost stack
 * @property {string} type
 * @property {string} operation
 * @property {"forward" | "cleanup"} direction
 * @property {State} state
 * @property {Phase} phase
 * @property {string[]} waiting_for
 * @property {string[]} breakpoints points
 * @property {string | null} reason
 * @property {string | null} inside the stack that its resource holds
 * @property {string | null} [started_at]
 * @property {string | null} [ended_at]
 * @property {string | null} [until]
 *
 * @typedef {object} TraversalDocument
 * @property {number} number
 * @property {string} action
 * @property {string} state
 * @property {string | null} [reason]
 * @property {string} [started_at]
 * @property {string | null} [ended_at]
 *
 * @typedef {object} OneGraph of one stack
 * @property {NodeDocument[]} nodes
 * @property {[number, number][]} edges
 * @property {TraversalDocument} traversal
 * @property {number} [sequence] of the last event that is in it
 *
 * @typedef {OneGraph & { stack_id: string, path: string }} GraphInside
 * @typedef {OneGraph & { stack_id?: string, path?: string, stacks?: GraphInside[] }} GraphDocument
 *
 * @typedef {object} EventDocument a CloudEvent
 * @property {string} type
 * @property {string} time
 * @property {number} sequence
 * @property {string} [stackpath] of a stack inside
 * @property {string} [subject]
 * @property {any} data
 */

/**
 * A node as it is known here: what does not change while its traversal lasts.
 *
 * @typedef {object} GraphNode
 * @property {string} key unique in the whole graph
 * @property {string} stack the path of its stack
 * @property {number} id
 * @property {string} name
 * @property {string} path
 * @property {string} type
 * @property {"forward" | "cleanup"} direction
 * @property {string | null} inside
 * @property {string[]} before keys
 * @property {string[]} after keys
 *
 * What changes.
 *
 * @typedef {object} Progress
 * @property {State} state
 * @property {Phase} phase
 * @property {string} operation
 * @property {string | null} reason
 * @property {OpenHook | null} hook that waits
 * @property {string[]} breakpoints
 * @property {string | null} started
 * @property {string | null} ended
 * @property {string | null} until when it is looked at again
 * @property {boolean} told whether anything was told of it in this traversal
 *
 * @typedef {object} OpenHook
 * @property {string} id empty where it is not known
 * @property {string} point
 * @property {string | null} deadline
 * @property {string | null} opened
 *
 * One traversal of one stack.
 *
 * @typedef {object} Walk
 * @property {string} path of the stack
 * @property {string | null} stackId
 * @property {number} traversal
 * @property {string} action
 * @property {number} sequence events up to here are in the document
 * @property {string[]} keys in the order of its layers
 */

/** @typedef {State | "gate"} Shown "gate": parked at a hook that waits */

export {};
