// The node that an event concerns.
import { keyOf } from "../tree.js";

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../types.js").EventDocument} EventDocument
 */

/**
 * @param {EventDocument} event
 * @returns {string} path of its stack
 */
export function stackOf(event) {
  return event.stackpath ?? event.data?.stack?.path ?? "";
}

/**
 * @param {Tree} tree
 * @param {EventDocument} event of a resource or hook
 * @returns {string | null} key of the node; null: no node of this traversal
 */
export function nodeKeyOf(tree, event) {
  const path = stackOf(event);
  const { node, traversal } = event.data;
  if (typeof node !== "number" || tree.stackGraphs.get(path)?.traversal !== traversal) return null;
  const key = keyOf(path, node);
  return tree.nodes.has(key) ? key : null;
}
