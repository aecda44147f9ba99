// Which node an event is about.
import { keyOf } from "../tree.js";

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../shapes.js").EventDocument} EventDocument
 */

/**
 * @param {EventDocument} event
 * @returns {string} the path of the stack that it is of
 */
export function stackOf(event) {
  return event.stackpath ?? event.data?.stack?.path ?? "";
}

/**
 * @param {Tree} tree
 * @param {EventDocument} event of a resource or of a hook
 * @returns {string | null} its key; null: of no node of this traversal
 */
export function aboutNode(tree, event) {
  const path = stackOf(event);
  const { node, traversal } = event.data;
  if (typeof node !== "number" || tree.walks.get(path)?.traversal !== traversal) return null;
  const key = keyOf(path, node);
  return tree.nodes.has(key) ? key : null;
}
