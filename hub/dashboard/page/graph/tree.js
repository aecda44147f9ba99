// The graph of a stack and of those inside as one: nodes by key, each with who stands around it.
import { layersOf } from "./layout/layers.js";

/**
 * @typedef {import("./shapes.js").GraphDocument} GraphDocument
 * @typedef {import("./shapes.js").GraphNode} GraphNode
 * @typedef {import("./shapes.js").NodeDocument} NodeDocument
 * @typedef {import("./shapes.js").OneGraph} OneGraph
 * @typedef {import("./shapes.js").Walk} Walk
 *
 * @typedef {object} Tree
 * @property {string} root the path of its outermost stack; empty when nothing is around that
 * @property {Map<string, GraphNode>} nodes
 * @property {Map<string, NodeDocument>} documents by key
 * @property {Map<string, Walk>} walks by the paths of their stacks
 * @property {Map<string, string>} holder the node around a stack inside, by the path of that
 */

/**
 * @param {GraphDocument} document
 * @returns {Tree}
 */
export function treeOf(document) {
  const root = document.path ?? pathOf(document);
  /** @type {Tree} */
  const tree = {
    root,
    nodes: new Map(),
    documents: new Map(),
    walks: new Map(),
    holder: new Map(),
  };
  add(tree, document, root, document.stack_id ?? null);
  const inside = [...(document.stacks ?? [])].sort((one, other) => depth(one) - depth(other));
  for (const one of inside) add(tree, one, one.path, one.stack_id);
  for (const walk of tree.walks.values()) {
    const holders = [...tree.nodes.values()].filter((node) => node.path === walk.path);
    // A replacement and what is cleared away share a path; the stack's id tells them apart.
    const holder = holders.find((node) => node.inside === walk.stackId) ?? holders[0];
    if (walk.path !== root && holder) tree.holder.set(walk.path, holder.key);
  }
  return tree;
}

/**
 * @param {string} path of a stack
 * @param {number} id of a node
 */
export function keyOf(path, id) {
  return `${path}#${id}`;
}

/**
 * The keys of all that is inside of a node, also further down.
 *
 * @param {Tree} tree
 * @param {string} path of the stack that the node holds
 * @returns {string[]}
 */
export function within(tree, path) {
  return [...tree.walks.values()]
    .filter((walk) => walk.path === path || walk.path.startsWith(`${path}/`))
    .flatMap((walk) => walk.keys);
}

/** @param {{ path: string }} one */
function depth(one) {
  return one.path.split("/").length;
}

/** @param {OneGraph} graph */
function pathOf(graph) {
  const [first] = graph.nodes;
  if (!first) return "";
  return first.resource_name ? first.path.slice(0, -first.resource_name.length - 1) : first.path;
}

/**
 * @param {Tree} tree
 * @param {OneGraph} graph
 * @param {string} path
 * @param {string | null} stackId
 */
function add(tree, graph, path, stackId) {
  for (const node of graph.nodes) {
    const key = keyOf(path, node.id);
    tree.documents.set(key, node);
    tree.nodes.set(key, {
      key,
      stack: path,
      id: node.id,
      name: node.resource_name,
      path: node.path,
      type: node.type,
      direction: node.direction,
      inside: node.inside,
      before: [],
      after: [],
    });
  }
  for (const [from, to] of graph.edges) {
    const [one, other] = [keyOf(path, from), keyOf(path, to)];
    tree.nodes.get(one)?.after.push(other);
    tree.nodes.get(other)?.before.push(one);
  }
  const keys = graph.nodes.map((node) => keyOf(path, node.id));
  const around = { after: new Map(), before: new Map() };
  for (const key of keys) {
    around.after.set(key, tree.nodes.get(key)?.after);
    around.before.set(key, tree.nodes.get(key)?.before);
  }
  tree.walks.set(path, {
    path,
    stackId,
    traversal: graph.traversal?.number ?? 0,
    action: graph.traversal?.action ?? "",
    sequence: graph.sequence ?? 0,
    keys: [...layersOf(keys, around).keys()],
  });
}
