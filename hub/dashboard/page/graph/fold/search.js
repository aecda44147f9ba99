// Search: by name, type, state and path.

import { WORDS } from "../words.js";
import { shown } from "./tally.js";

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../shapes.js").Progress} Progress
 * @typedef {import("../shapes.js").GraphNode} GraphNode
 */

/** @type {Record<string, (node: GraphNode, progress: Progress) => string>} */
const FIELDS = {
  name: (node) => node.name,
  type: (node) => node.type,
  path: (node) => node.path,
  state: (_node, progress) => `${shown(progress)} ${WORDS[shown(progress)]}`,
  operation: (_node, progress) => progress.operation,
};

/**
 * Nodes of which each word of the query is part: of its name, type, path, state or operation; with
 * `state:failed` and the like, of that alone.
 *
 * @param {Tree} tree
 * @param {ReadonlyMap<string, Progress>} known
 * @param {string} query
 * @returns {string[]} keys in the order of the layers; of those whose name is meant, first
 */
export function search(tree, known, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  /** @type {string[]} */
  const named = [];
  /** @type {string[]} */
  const others = [];
  for (const walk of tree.walks.values()) {
    for (const key of walk.keys) {
      const [node, progress] = [tree.nodes.get(key), known.get(key)];
      if (!node || !progress || !words.every((word) => fits(node, progress, word))) continue;
      (words.some((word) => node.name.toLowerCase().startsWith(word)) ? named : others).push(key);
    }
  }
  return [...named, ...others];
}

/**
 * @param {GraphNode} node
 * @param {Progress} progress
 * @param {string} word
 */
function fits(node, progress, word) {
  const [field = "", ...rest] = word.split(":");
  const read = FIELDS[field];
  if (read && rest.length) return read(node, progress).toLowerCase().includes(rest.join(":"));
  return Object.values(FIELDS).some((one) => one(node, progress).toLowerCase().includes(word));
}
