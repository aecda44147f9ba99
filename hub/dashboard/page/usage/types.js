/**
 * Types of quotas, tokens and services.
 *
 * limit: null if unlimited.
 * @typedef {{name: string, limit: number | null, used: number}} Quota
 *
 * requests_per_minute, used: of a budget that is used up; null: the endpoint failed.
 * @typedef {{endpoint: string, resource_type: string | null, requests_per_minute: number | null,
 *   used: number | null, until: string, reason: string}} PausedEndpoint
 *
 * requests: today. requests_per_minute, used: null: it has no budget.
 * @typedef {{endpoint: string, requests: number, requests_per_minute: number | null,
 *   used: number | null}} RequestedEndpoint
 *
 * @typedef {object} Token
 * @property {string} id
 * @property {string} name
 * @property {string[]} roles
 * @property {"token" | "password"} kind
 * @property {"none" | "tokens" | "keystone"} mode
 * @property {boolean} everywhere
 * @property {string} created_by
 * @property {string} created_at
 * @property {string | null} expires_at
 * @property {string | null} used_at
 * @property {string | null} revoked_at
 * @property {string | null} revoked_by
 *
 * A role of a process that runs.
 * @typedef {{id: string, engine_id: string, host: string, binary: string, status: "up" | "down",
 *   created_at: string, updated_at: string, report_interval: number}} Service
 */

export {};
