// Words and names for what the graph shows.
import { shown } from "./fold/tally.js";

/**
 * @typedef {import("./shapes.js").Progress} Progress
 * @typedef {import("./shapes.js").GraphNode} GraphNode
 * @typedef {import("./shapes.js").Shown} Shown
 */

/** @type {Record<Shown, string>} */
export const WORDS = {
  gate: "at the gate",
  parked: "waits",
  waiting: "not yet",
  ready: "ready",
  running: "running",
  done: "done",
  failed: "failed",
  stopped: "stopped",
  dropped: "dropped",
};

/**
 * @param {Progress} progress
 * @returns {string} as in "web, create, waits at pre-create"
 */
export function sentence(progress) {
  const state = shown(progress);
  if (state === "gate") return `waits at ${progress.hook?.point}`;
  if (state === "parked") return progress.reason ? `waits: ${progress.reason}` : "waits";
  if (state === "waiting") return "waits for others";
  if (state === "failed" && progress.reason) return `failed: ${progress.reason}`;
  return WORDS[state];
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
 * @returns {string} "web, create, waits at pre-create"
 */
export function label(node, progress) {
  const parts = [nameOf(node), operationOf(node, progress), sentence(progress)];
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
