/** Filtering and grouping of hooks. Pure. */

import { subject } from "./hook_text.js";
import { isForUser } from "./rights.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./rights.js").User} User */
/**
 * stack: name or ID of the root stack. text: part of a path, type or stack name.
 * @typedef {{mine: boolean, stack: string, point: string, text: string}} Filter
 */

/** More hooks than this are grouped by stack. */
const GROUPING_THRESHOLD = 30;

/** @param {URLSearchParams} query @returns {Filter} */
export function parseFilter(query) {
  return {
    mine: query.get("mine") === "true",
    stack: query.get("stack") ?? "",
    point: query.get("point") ?? "",
    text: query.get("search") ?? "",
  };
}

/** @param {Filter} filter */
export function isFiltered(filter) {
  return filter.mine || filter.stack !== "" || filter.point !== "" || filter.text !== "";
}

/** @param {Hook} hook @param {Filter} filter @param {User | null} who */
export function matchesFilter(hook, filter, who) {
  const { mine, stack, point, text } = filter;
  if (stack && stack !== hook.root_stack_name && stack !== hook.root_stack_id) return false;
  if (point && point !== hook.point) return false;
  if (mine && hook.state === "waiting" && !isForUser(hook, who)) return false;
  const searched = `${subject(hook)} ${hook.resource?.type ?? ""} ${hook.root_stack_name}`;
  return searched.toLowerCase().includes(text.trim().toLowerCase());
}

/** The options of the filters. @param {readonly Hook[]} hooks */
export function filterOptions(hooks) {
  return {
    stacks: [...new Set(hooks.map((hook) => hook.root_stack_name))].sort(),
    points: [...new Set(hooks.map((hook) => hook.point))].sort(),
  };
}

/** Whether to group the hooks by stack. @param {readonly Hook[]} hooks */
export function shouldGroup(hooks) {
  return (
    hooks.length > GROUPING_THRESHOLD && new Set(hooks.map((hook) => hook.root_stack_id)).size > 1
  );
}

/**
 * Groups hooks by root stack; the stack with the next deadline comes first.
 * @param {readonly Hook[]} hooks by deadline
 * @returns {{id: string, name: string, hooks: Hook[]}[]}
 */
export function byStack(hooks) {
  /** @type {Map<string, {id: string, name: string, hooks: Hook[]}>} */
  const result = new Map();
  for (const hook of hooks) {
    const id = hook.root_stack_id;
    const group = result.get(id) ?? { id, name: hook.root_stack_name, hooks: [] };
    group.hooks.push(hook);
    result.set(id, group);
  }
  return [...result.values()];
}
