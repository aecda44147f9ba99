// Grouping of the nodes of a stack.

import { shortType } from "../labels.js";
import { layersOf, neighbours } from "../layout/layers.js";

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("./view.js").By} By
 * @typedef {{ title: string, members: string[] }} Group with one member: an ungrouped node
 */

/** Minimum size of a group. */
const FEW = 3;

/**
 * Groups all nodes. The nodes of a group are in one layer, so that the edges between groups form no
 * cycle.
 *
 * @param {Tree} tree
 * @param {string[]} keys
 * @param {Exclude<By, "auto">} by
 * @returns {Group[]}
 */
export function groupsOf(tree, keys, by) {
  if (by === "none") return keys.map((key) => ({ title: "", members: [key] }));
  const edges = keys.flatMap((key) =>
    (tree.nodes.get(key)?.after ?? []).map(/** @returns {[string, string]} */ (to) => [key, to]),
  );
  const layers = layersOf(keys, neighbours(keys, edges));
  /** @type {Map<string, string[]>} */
  const alike = new Map();
  for (const key of keys) {
    const mark = MARKS[by](tree, key, layers.get(key) ?? 0);
    const mates = alike.get(mark);
    if (mates) mates.push(key);
    else alike.set(mark, [key]);
  }
  return [...alike.values()].flatMap((members) => {
    if (members.length < FEW) return members.map((member) => ({ title: "", members: [member] }));
    const [first = ""] = members;
    return [{ title: titleOf(tree, members, by, layers.get(first) ?? 0), members }];
  });
}

/**
 * The common property of the nodes of a group.
 * @type {Record<"group" | "type" | "layer", (tree: Tree, key: string, layer: number) => string>}
 */
const MARKS = {
  group: (tree, key, layer) => {
    const node = tree.nodes.get(key);
    return `${MARKS.type(tree, key, layer)}|${node?.before.join()}|${node?.after.join()}`;
  },
  type: (tree, key, layer) => {
    const node = tree.nodes.get(key);
    return `${layer}|${node?.type}|${node?.direction}|${tree.documents.get(key)?.operation}`;
  },
  layer: (_tree, _key, layer) => `${layer}`,
};

/**
 * @param {Tree} tree
 * @param {string[]} members
 * @param {By} by
 * @param {number} layer
 */
function titleOf(tree, members, by, layer) {
  if (by === "layer") return `layer ${layer + 1}`;
  const type = tree.nodes.get(members[0] ?? "")?.type ?? "";
  return shortType(type);
}
