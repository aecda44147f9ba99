/**
 * Types of the stack list.
 *
 * nodes: number by state, of the change in the whole stack tree. hooks_waiting, resources: in the
 * stack tree.
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
 * rows: the shown stacks in order. deleted: IDs of shown stacks that were deleted. added: matching
 * stacks that are not shown yet.
 * @typedef {{rows: Line[], deleted: Set<string>, added: Line[]}} Shown
 */

export {};
