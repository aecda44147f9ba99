// Types of the graph documents (`GET .../graph?nested=true`) and events.

/**
 * @typedef {"waiting" | "ready" | "running" | "parked" | "done" | "failed" | "stopped" | "dropped"} State
 * @typedef {"pre" | "execute" | "confirm" | "post"} Phase
 *
 * @typedef {object} NodeDocument
 * @property {number} id
 * @property {string} resource_name empty: the whole stack
 * @property {string} path from the root stack
 * @property {string} type
 * @property {string} operation
 * @property {"forward" | "cleanup"} direction
 * @property {State} state
 * @property {Phase} phase
 * @property {string[]} waiting_for
 * @property {string[]} breakpoints points
 * @property {string | null} reason
 * @property {string | null} nested_stack_id ID of the nested stack of its resource
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
 * @typedef {object} SingleGraph the graph of one stack
 * @property {NodeDocument[]} nodes
 * @property {[number, number][]} edges
 * @property {TraversalDocument} traversal
 * @property {number} [sequence] of the last event included
 *
 * @typedef {SingleGraph & { stack_id: string, path: string }} GraphInside
 * @typedef {SingleGraph & { stack_id?: string, path?: string, stacks?: GraphInside[] }} GraphDocument
 *
 * @typedef {object} EventDocument a CloudEvent
 * @property {string} type
 * @property {string} time
 * @property {number} sequence
 * @property {string} [stackpath] of a nested stack
 * @property {string} [subject]
 * @property {any} data
 */

/**
 * Properties of a node that do not change during its traversal.
 *
 * @typedef {object} GraphNode
 * @property {string} key unique in the whole graph
 * @property {string} stack the path of its stack
 * @property {number} id
 * @property {string} name
 * @property {string} path
 * @property {string} type
 * @property {"forward" | "cleanup"} direction
 * @property {string | null} nested_stack_id
 * @property {string[]} before keys
 * @property {string[]} after keys
 *
 * The changing state of a node.
 *
 * @typedef {object} Progress
 * @property {State} state
 * @property {Phase} phase
 * @property {string} operation
 * @property {string | null} reason
 * @property {OpenHook | null} hook waiting hook
 * @property {string[]} breakpoints
 * @property {string | null} started
 * @property {string | null} ended
 * @property {string | null} until time of the next check
 * @property {boolean} reported whether an event or document reported its state in this traversal
 *
 * @typedef {object} OpenHook
 * @property {string} id empty if unknown
 * @property {string} point
 * @property {string | null} deadline
 * @property {string | null} opened
 *
 * One traversal of one stack.
 *
 * @typedef {object} StackGraph
 * @property {string} path of the stack
 * @property {string | null} stackId
 * @property {number} traversal
 * @property {string} action
 * @property {number} sequence events up to this one are in the document
 * @property {string[]} keys in layer order
 */

/** @typedef {State | "gate"} Shown "gate": parked at a waiting hook */

export {};
