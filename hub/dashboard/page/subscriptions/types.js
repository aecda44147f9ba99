/**
 * Types of subscriptions and deliveries.
 *
 * @typedef {{days: string[], from: string, to: string, timezone: string}} QuietHours
 *
 * @typedef {{every: "15m" | "1h" | "daily", at: string | null, timezone: string | null}} Digest
 *
 * @typedef {object} Subscription
 * @property {string} id
 * @property {string} channel
 * @property {string} target
 * @property {string[]} events
 * @property {string[]} stacks
 * @property {string[]} resources
 * @property {string[]} types
 * @property {string[]} points
 * @property {string[]} tags
 * @property {boolean} nested
 * @property {boolean} ordered
 * @property {QuietHours | null} quiet_hours when deliveries are held
 * @property {Digest | null} digest when notifications are sent together
 * @property {"enabled" | "disabled"} state
 * @property {string} reason why it is disabled
 * @property {"api" | "configuration" | "environment"} origin
 * @property {string | null} stack_id of the stack whose environment defines it
 * @property {number} failures dead deliveries since the last successful one
 * @property {string} created_at
 *
 * @typedef {object} Delivery
 * @property {string} id
 * @property {string} stack_id
 * @property {number} sequence
 * @property {string} event_id
 * @property {string} type
 * @property {"pending" | "delivered" | "dead"} state
 * @property {number} attempts
 * @property {string | null} next_at
 * @property {number | null} code
 * @property {string | null} error
 * @property {string | null} response
 * @property {string} created_at
 * @property {string | null} ended_at
 */

export {};
