// Search by name, type, state, path and operation.

import { WORDS } from "../labels.js";
import { displayState } from "./tally.js";

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../types.js").Progress} Progress
 * @typedef {import("../types.js").GraphNode} GraphNode
 */

/** @type {Record<string, (node: GraphNode, progress: Progress) => string>} */
const FIELDS = {
  name: (node) => node.name,
  type: (node) => node.type,
  path: (node) => node.path,
  state: (_node, progress) => `${displayState(progress)} ${WORDS[displayState(progress)]}`,
  operation: (_node, progress) => progress.operation,
};

/**
 * Finds the nodes that match every word of the query in name, type, path, state or operation;
 * `state:failed` and similar words search one field.
 *
 * @param {Tree} tree
 * @param {ReadonlyMap<string, Progress>} known
 * @param {string} query
 * @returns {string[]} keys in layer order; nodes whose name matches first
 */
export function search(tree, known, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  /** @type {string[]} */
  const named = [];
  /** @type {string[]} */
  const others = [];
  for (const stackGraph of tree.stackGraphs.values()) {
    for (const key of stackGraph.keys) {
      const [node, progress] = [tree.nodes.get(key), known.get(key)];
      if (!node || !progress || !words.every((word) => matchesWord(node, progress, word))) continue;
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
function matchesWord(node, progress, word) {
  const [field = "", ...rest] = word.split(":");
  const read = FIELDS[field];
  if (read && rest.length) return read(node, progress).toLowerCase().includes(rest.join(":"));
  return Object.values(FIELDS).some((field) => field(node, progress).toLowerCase().includes(word));
}
