// The graphs of a stack and its nested stacks as one graph: nodes by key, with their neighbors.
import { layersOf } from "./layout/layers.js";

/**
 * @typedef {import("./types.js").GraphDocument} GraphDocument
 * @typedef {import("./types.js").GraphNode} GraphNode
 * @typedef {import("./types.js").NodeDocument} NodeDocument
 * @typedef {import("./types.js").SingleGraph} SingleGraph
 * @typedef {import("./types.js").StackGraph} StackGraph
 *
 * @typedef {object} Tree
 * @property {string} root path of the shown stack; empty if it is a root stack
 * @property {Map<string, GraphNode>} nodes
 * @property {Map<string, NodeDocument>} documents by key
 * @property {Map<string, StackGraph>} stackGraphs by stack path
 * @property {Map<string, string>} holder key of the node of a nested stack, by its path
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
    stackGraphs: new Map(),
    holder: new Map(),
  };
  add(tree, document, root, document.stack_id ?? null);
  const nested = [...(document.stacks ?? [])].sort((a, b) => depth(a) - depth(b));
  for (const item of nested) add(tree, item, item.path, item.stack_id);
  for (const stackGraph of tree.stackGraphs.values()) {
    const holders = [...tree.nodes.values()].filter((node) => node.path === stackGraph.path);
    // A replacement and its cleanup share a path; the ID of the stack distinguishes them.
    const holder =
      holders.find((node) => node.nested_stack_id === stackGraph.stackId) ?? holders[0];
    if (stackGraph.path !== root && holder) tree.holder.set(stackGraph.path, holder.key);
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
 * Keys of all nodes in a nested stack and below.
 *
 * @param {Tree} tree
 * @param {string} path of the nested stack
 * @returns {string[]}
 */
export function keysWithin(tree, path) {
  return [...tree.stackGraphs.values()]
    .filter((stackGraph) => stackGraph.path === path || stackGraph.path.startsWith(`${path}/`))
    .flatMap((stackGraph) => stackGraph.keys);
}

/** @param {{ path: string }} item */
function depth(item) {
  return item.path.split("/").length;
}

/** @param {SingleGraph} graph */
function pathOf(graph) {
  const [first] = graph.nodes;
  if (!first) return "";
  return first.resource_name ? first.path.slice(0, -first.resource_name.length - 1) : first.path;
}

/**
 * @param {Tree} tree
 * @param {SingleGraph} graph
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
      nested_stack_id: node.nested_stack_id,
      before: [],
      after: [],
    });
  }
  for (const [from, to] of graph.edges) {
    const [source, target] = [keyOf(path, from), keyOf(path, to)];
    tree.nodes.get(source)?.after.push(target);
    tree.nodes.get(target)?.before.push(source);
  }
  const keys = graph.nodes.map((node) => keyOf(path, node.id));
  const around = { after: new Map(), before: new Map() };
  for (const key of keys) {
    around.after.set(key, tree.nodes.get(key)?.after);
    around.before.set(key, tree.nodes.get(key)?.before);
  }
  tree.stackGraphs.set(path, {
    path,
    stackId,
    traversal: graph.traversal?.number ?? 0,
    action: graph.traversal?.action ?? "",
    sequence: graph.sequence ?? 0,
    keys: [...layersOf(keys, around).keys()],
  });
}
