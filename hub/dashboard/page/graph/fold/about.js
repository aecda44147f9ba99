// Which node an event is about.

/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../shapes.js").EventDocument} EventDocument
 * @typedef {import("../shapes.js").Progress} Progress
 * @typedef {import("../shapes.js").State} State
 * @typedef {ReadonlyMap<string, Progress>} Known
 */

/** @type {ReadonlySet<State>} */
const UNDER_WAY = new Set(["running", "parked"]);
/** @type {ReadonlySet<State>} */
export const ENDED = new Set(["done", "failed", "stopped", "dropped"]);

/** @type {WeakMap<Tree, Map<string, string[]>>} */
const byPath = new WeakMap();

/**
 * @param {Tree} tree
 * @param {Known} known
 * @param {EventDocument} event of a resource or of a hook
 * @returns {string | null} its key; null: of no node of this traversal
 */
export function aboutNode(tree, known, event) {
  const { data } = event;
  const stack = event.stackpath ?? data.stack?.path ?? "";
  const walk = tree.walks.get(stack);
  if (!walk || ofAnother(data, walk.traversal)) return null;
  const node = data.node ?? data.hook?.node;
  if (typeof node === "number") {
    const key = `${stack}#${node}`;
    return tree.nodes.has(key) ? key : null;
  }
  const name = data.resource?.name ?? data.hook?.resource_name ?? "";
  const path = name && stack ? `${stack}/${name}` : name || stack;
  const mates = (keysByPath(tree).get(path) ?? []).filter((key) => {
    const one = tree.nodes.get(key);
    return one !== undefined && one.stack === stack && one.name === name;
  });
  const operation = data.operation ?? operationAt(data.hook?.point ?? "");
  return chosen(known, mates, operation);
}

/**
 * @param {any} data
 * @param {number} traversal
 */
function ofAnother(data, traversal) {
  const said = data.traversal ?? data.hook?.traversal;
  return typeof said === "number" && said !== traversal;
}

/**
 * @param {string} point
 * @returns {string | null} null: inside whatever operation runs
 */
function operationAt(point) {
  if (point.startsWith("pre-stack-")) return "begin";
  if (point.startsWith("post-stack-")) return "finish";
  if (point === "pre-batch" || point === "pre-scale-in") return null;
  const [moment, ...rest] = point.split("-");
  return moment === "confirm" ? null : rest.join("-");
}

/**
 * @param {Known} known
 * @param {string[]} keys
 * @param {string | null} operation
 */
function chosen(known, keys, operation) {
  const fits = keys.filter((key) => {
    const does = known.get(key)?.operation;
    return operation === null || does === operation || becomes(does, operation);
  });
  const states = fits.map(
    (key) => /** @type {const} */ ([key, known.get(key)?.state ?? "waiting"]),
  );
  const best =
    states.find(([, state]) => UNDER_WAY.has(state)) ??
    states.find(([, state]) => state === "ready") ??
    states.find(([, state]) => !ENDED.has(state)) ??
    states.at(-1);
  return best ? best[0] : null;
}

/**
 * An update may turn out to need a replacement, and back.
 *
 * @param {string | undefined} does
 * @param {string} operation
 */
function becomes(does, operation) {
  return (
    (does === "update" && operation === "replace") || (does === "replace" && operation === "update")
  );
}

/**
 * @param {Tree} tree
 * @returns {Map<string, string[]>}
 */
function keysByPath(tree) {
  const made = byPath.get(tree);
  if (made) return made;
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const walk of tree.walks.values()) {
    for (const key of walk.keys) {
      const path = tree.nodes.get(key)?.path ?? "";
      const mates = found.get(path);
      if (mates) mates.push(key);
      else found.set(path, [key]);
    }
  }
  byPath.set(tree, found);
  return found;
}
