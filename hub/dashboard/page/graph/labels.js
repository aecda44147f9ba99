// Labels of the graph.
import { NESTED_STACK } from "./fold/events.js";
import { displayState } from "./fold/tally.js";

/**
 * @typedef {import("./types.js").Progress} Progress
 * @typedef {import("./types.js").GraphNode} GraphNode
 * @typedef {import("./types.js").Shown} Shown
 */

/** @type {Record<Shown, string>} */
export const WORDS = {
  gate: "waiting for approval",
  parked: "waiting",
  waiting: "waiting for dependencies",
  ready: "ready",
  running: "running",
  done: "done",
  failed: "failed",
  stopped: "stopped",
  dropped: "dropped",
};

/** Words where there is little room; icons distinguish the states. @type {Record<Shown, string>} */
export const SHORT_WORDS = { ...WORDS, gate: "waiting", waiting: "waiting" };

/**
 * @param {GraphNode} node
 * @param {Progress} progress
 * @returns {string} for example "waiting for approval at pre-create"
 */
export function sentence(node, progress) {
  const state = displayState(progress);
  if (state === "gate") return `waiting for approval at ${progress.hook?.point}`;
  if (state === "parked") return whatItWaitsFor(node, progress);
  if (state === "failed" && progress.reason) return `failed: ${progress.reason}`;
  return WORDS[state];
}

/** @param {GraphNode} node @param {Progress} progress */
function whatItWaitsFor(node, { reason }) {
  if (node.nested_stack_id || reason === NESTED_STACK) return "waiting for its nested stack";
  return reason ? `waiting: ${reason}` : WORDS.parked;
}

/**
 * @param {import("./fold/view.js").Item} item a group
 * @returns {string} "net_* (247)"
 */
export function groupTitle({ title, members }) {
  return `${title} (${members.length})`;
}

/**
 * @param {string} type
 * @returns {string} `Server` of `OS::Nova::Server`
 */
export function shortType(type) {
  const short = type.split("::").at(-1) ?? type;
  return short.split("/").at(-1) || type;
}

/**
 * @param {GraphNode} node
 * @returns {string}
 */
export function nameOf(node) {
  return node.name || "the stack";
}

/**
 * @param {GraphNode} node
 * @param {Progress} progress
 * @returns {string} "web, create, waiting for approval at pre-create"
 */
export function label(node, progress) {
  const parts = [nameOf(node), operationOf(node, progress), sentence(node, progress)];
  if (node.direction === "cleanup") parts.splice(1, 0, "cleanup");
  return parts.join(", ");
}

/**
 * @param {GraphNode} node
 * @param {Progress} progress
 */
export function operationOf(node, progress) {
  return node.name ? progress.operation : `${progress.operation} of the stack`;
}
