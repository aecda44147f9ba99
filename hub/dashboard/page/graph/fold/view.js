// The items to draw: nodes, groups, and the content of expanded groups and nested stacks. Pure.

import { shortType } from "../labels.js";
import { layersOf, neighbors } from "../layout/layers.js";
import { keysWithin } from "../tree.js";

/**
 * @typedef {import("../types.js").GraphNode} GraphNode
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../layout/layers.js").Edge} Edge
 * @typedef {"auto" | "none" | "group" | "type" | "layer"} By group: of one type with the same neighbors
 *   in one layer; type: of one type in one layer; layer: all of one layer; auto: the first of these
 *   that leaves no more than MANY
 *
 * @typedef {object} Item
 * @property {string} key of the node, or of the box
 * @property {"node" | "group"} kind
 * @property {GraphNode | null} node
 * @property {string} title of a group: the pattern of the names in it
 * @property {string[]} members keys of all nodes in it, including nested stacks
 * @property {boolean} opens whether it can be expanded
 * @property {View | null} view its content, if expanded
 *
 * @typedef {object} View
 * @property {Item[]} items
 * @property {Edge[]} edges
 */

/** Above this number of items, nodes are grouped automatically. */
export const MANY = 1500;

/**
 * @param {Tree} tree
 * @param {By} by
 * @param {ReadonlySet<string>} open keys of expanded items
 * @returns {View}
 */
export function viewOf(tree, by, open) {
  const keys = tree.stackGraphs.get(tree.root)?.keys ?? [];
  return viewOfKeys(tree, keys, by, open, tree.root);
}

/**
 * @param {Tree} tree
 * @param {string[]} keys of one stack
 * @param {By} by
 * @param {ReadonlySet<string>} open
 * @param {string} path of the stack
 * @returns {View}
 */
function viewOfKeys(tree, keys, by, open, path) {
  const groups = chooseGroups(tree, keys, by);
  /** @type {Map<string, string>} */
  const boxOf = new Map();
  /** @type {Item[]} */
  const items = [];
  for (const { title, members } of groups) {
    const [first = ""] = members;
    if (members.length === 1) {
      items.push(itemOf(tree, first, by, open));
      continue;
    }
    const key = `${path}|${title}|${first}`;
    for (const member of members) boxOf.set(member, key);
    items.push({
      key,
      kind: "group",
      node: null,
      title,
      members: members.flatMap((member) => [member, ...containedKeys(tree, member)]),
      opens: true,
      view: open.has(key)
        ? { items: members.map((member) => itemOf(tree, member, by, open)), edges: [] }
        : null,
    });
  }
  return { items, edges: edgesOf(tree, keys, boxOf) };
}

/**
 * @param {Tree} tree
 * @param {string[]} keys
 * @param {By} by
 */
function chooseGroups(tree, keys, by) {
  if (by !== "auto") return groupsOf(tree, keys, by);
  if (keys.length <= MANY) return groupsOf(tree, keys, "none");
  const ways = /** @type {const} */ (["group", "type", "layer"]);
  const made = ways.map((way) => groupsOf(tree, keys, way));
  return (
    made.find((groups) => groups.length <= MANY) ?? /** @type {typeof made[0]} */ (made.at(-1))
  );
}

/**
 * @param {Tree} tree
 * @param {string} key
 * @returns {string[]}
 */
function containedKeys(tree, key) {
  const path = tree.nodes.get(key)?.path;
  return path !== undefined && tree.holder.get(path) === key ? keysWithin(tree, path) : [];
}

/**
 * @param {Tree} tree
 * @param {string} key
 * @param {By} by
 * @param {ReadonlySet<string>} open
 * @returns {Item}
 */
function itemOf(tree, key, by, open) {
  const node = /** @type {GraphNode} */ (tree.nodes.get(key));
  const members = containedKeys(tree, key);
  const inside = tree.stackGraphs.get(node.path)?.keys ?? [];
  const opens = members.length > 0;
  return {
    key,
    kind: "node",
    node,
    title: node.name,
    members: [key, ...members],
    opens,
    view: opens && open.has(key) ? viewOfKeys(tree, inside, by, open, node.path) : null,
  };
}

/**
 * The edges between nodes and groups, without duplicates.
 *
 * @param {Tree} tree
 * @param {string[]} keys
 * @param {Map<string, string>} boxOf
 * @returns {Edge[]}
 */
function edgesOf(tree, keys, boxOf) {
  /** @type {Map<string, Set<string>>} */
  const result = new Map();
  /** @type {Edge[]} */
  const edges = [];
  for (const key of keys) {
    const from = boxOf.get(key) ?? key;
    const ends = result.get(from) ?? new Set();
    result.set(from, ends);
    for (const other of tree.nodes.get(key)?.after ?? []) {
      const to = boxOf.get(other) ?? other;
      if (from === to || ends.has(to)) continue;
      ends.add(to);
      edges.push([from, to]);
    }
  }
  return edges;
}

/**
 * The groups and nested stacks to expand for a node to be visible, outermost first.
 *
 * @param {View} folded as it is drawn now
 * @param {string} key of the node
 * @returns {string[]} empty: it is visible, or does not exist
 */
export function collapsedAncestors(folded, key) {
  for (const item of folded.items) {
    if (item.key === key || !item.members.includes(key)) continue;
    return item.view ? collapsedAncestors(item.view, key) : [item.key];
  }
  return [];
}

/**
 * @param {View} view
 * @returns {number} its items, with those of expanded ones
 */
export function countItems({ items }) {
  return items.reduce((sum, { view }) => sum + 1 + (view ? countItems(view) : 0), 0);
}

/** @typedef {{ title: string, members: string[] }} Group with one member: an ungrouped node */

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
function groupsOf(tree, keys, by) {
  if (by === "none") return keys.map((key) => ({ title: "", members: [key] }));
  const edges = keys.flatMap((key) =>
    (tree.nodes.get(key)?.after ?? []).map(/** @returns {[string, string]} */ (to) => [key, to]),
  );
  const layers = layersOf(keys, neighbors(keys, edges));
  /** @type {Map<string, string[]>} */
  const byMark = new Map();
  for (const key of keys) {
    const mark = MARKS[by](tree, key, layers.get(key) ?? 0);
    const peers = byMark.get(mark);
    if (peers) peers.push(key);
    else byMark.set(mark, [key]);
  }
  return [...byMark.values()].flatMap((members) => {
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
  const nodes = members.flatMap((key) => tree.nodes.get(key) ?? []);
  const patterns = [...new Set(nodes.map((node) => namePattern(node.name)))];
  if (patterns.length <= MAX_PATTERNS) return patterns.join(", ");
  const prefix = commonPrefix(nodes.map((node) => node.name));
  if (prefix.length >= MIN_PREFIX) return `${prefix}*`;
  return by === "layer" ? `layer ${layer + 1}` : shortType(nodes[0]?.type ?? "");
}

/** A group with more name patterns is named by their common prefix. */
const MAX_PATTERNS = 2;
const MIN_PREFIX = 2;

/** `net_*` for net_0, net_1 and so on. @param {string} name */
function namePattern(name) {
  return name.replace(/\d+/g, "*");
}

/** @param {readonly string[]} names */
function commonPrefix(names) {
  const [first = ""] = names;
  let length = first.length;
  for (const name of names) {
    while (!name.startsWith(first.slice(0, length))) length -= 1;
  }
  return first.slice(0, length);
}
