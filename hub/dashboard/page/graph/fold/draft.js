// The changes of one event, including those of dependent nodes.
/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../types.js").Progress} Progress
 * @typedef {ReadonlyMap<string, Progress>} Known
 */

/** @type {ReadonlySet<import("../types.js").State>} */
export const ENDED = new Set(["done", "failed", "stopped", "dropped"]);

/** States inferred from the dependencies of a node without events. */
const INFERRED = new Set(["waiting", "ready", "done"]);

export class Draft {
  /**
   * @param {Tree} tree
   * @param {Known} known
   */
  constructor(tree, known) {
    this.tree = tree;
    this.known = known;
    /** @type {Map<string, Progress>} */
    this.changes = new Map();
  }

  /**
   * @param {string} key
   * @returns {Progress}
   */
  get(key) {
    const existing = this.changes.get(key) ?? this.known.get(key);
    if (!existing) throw new Error(`the graph has no node ${key}`);
    return existing;
  }

  /**
   * @param {string} key
   * @param {Partial<Progress>} values
   */
  set(key, values) {
    const before = this.get(key);
    this.changes.set(key, { ...before, ...values });
    const wasDone = before.state === "done";
    const isDone = this.get(key).state === "done";
    if (wasDone !== isDone) this.#propagate(key);
  }

  /**
   * Marks the dependencies of a started node as done, including nodes that finished without an
   * event because they had no work.
   *
   * @param {string} key
   */
  markDependenciesDone(key) {
    for (const before of this.tree.nodes.get(key)?.before ?? []) {
      if (ENDED.has(this.get(before).state)) continue;
      this.markDependenciesDone(before);
      this.set(before, { state: "done", hook: null });
    }
  }

  /** @param {string} key */
  isFree(key) {
    const before = this.tree.nodes.get(key)?.before ?? [];
    return before.every((item) => this.get(item).state === "done");
  }

  /** @param {string} key of a node that became done, or no longer is */
  #propagate(key) {
    for (const after of this.tree.nodes.get(key)?.after ?? []) {
      const { state, reported } = this.get(after);
      // An inferred end is taken back together with its cause.
      if (reported || !INFERRED.has(state)) continue;
      const free = this.isFree(after);
      if (free && (state === "done" || this.#hasNothingToDo(after)))
        this.set(after, { state: "done" });
      else this.set(after, { state: free ? "ready" : "waiting" });
    }
  }

  /**
   * Whether a cleanup node has no work because its resource was not replaced.
   *
   * @param {string} key
   */
  #hasNothingToDo(key) {
    const node = this.tree.nodes.get(key);
    if (node?.direction !== "cleanup") return false;
    return node.before.some((item) => {
      const other = this.tree.nodes.get(item);
      const { state, operation } = this.get(item);
      const same = other?.path === node.path && other.direction === "forward";
      return same && state === "done" && operation === "update";
    });
  }
}
