/**
 * The shapes of the list of stacks.
 *
 * nodes: state -> how many, of the change in the whole tree. hooks_waiting, resources: in the tree.
 * @typedef {object} Line
 * @property {string} id
 * @property {string} name
 * @property {string} action
 * @property {string} status
 * @property {string} reason
 * @property {string[]} tags
 * @property {string} owner
 * @property {string} created_at
 * @property {string | null} updated_at
 * @property {{number: number, action: string, state: string, requested_by: string,
 *   started_at: string, ended_at: string | null}} traversal
 * @property {Record<string, number>} nodes
 * @property {number} hooks_waiting
 * @property {number} hooks_dry
 * @property {number} resources
 *
 * @typedef {{statuses: Record<string, number>, waiting: number}} Counts
 *
 * rows: as they are shown. gone: ids of those of them that are there no more. added: those that
 * are asked for and not shown yet.
 * @typedef {{rows: Line[], gone: Set<string>, added: Line[]}} Shown
 */

export {};
