// Nodes while an event changes some of them; who comes after them follows.
/**
 * @typedef {import("../tree.js").Tree} Tree
 * @typedef {import("../shapes.js").Progress} Progress
 * @typedef {ReadonlyMap<string, Progress>} Known
 */

/** @type {ReadonlySet<import("../shapes.js").State>} */
export const ENDED = new Set(["done", "failed", "stopped", "dropped"]);

/** Known of a node of which nothing was told, from those before it. */
const GUESSED = new Set(["waiting", "ready", "done"]);

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
    const found = this.changes.get(key) ?? this.known.get(key);
    if (!found) throw new Error(`the graph has no node ${key}`);
    return found;
  }

  /**
   * @param {string} key
   * @param {Partial<Progress>} values
   */
  set(key, values) {
    const before = this.get(key);
    this.changes.set(key, { ...before, ...values });
    const was = before.state === "done";
    const is = this.get(key).state === "done";
    if (was !== is) this.#follow(key);
  }

  /**
   * Whatever a node comes after has ended well when the node is under way: also what ended without
   * a word, because there was nothing to do.
   *
   * @param {string} key
   */
  reached(key) {
    for (const before of this.tree.nodes.get(key)?.before ?? []) {
      if (ENDED.has(this.get(before).state)) continue;
      this.reached(before);
      this.set(before, { state: "done", hook: null });
    }
  }

  /** @param {string} key */
  isFree(key) {
    const before = this.tree.nodes.get(key)?.before ?? [];
    return before.every((one) => this.get(one).state === "done");
  }

  /** @param {string} key of one that is done now, or is not any more */
  #follow(key) {
    for (const after of this.tree.nodes.get(key)?.after ?? []) {
      const { state, told } = this.get(after);
      // What ended without a word did so by our guess: it is taken back with what led to it.
      if (told || !GUESSED.has(state)) continue;
      const free = this.isFree(after);
      if (free && (state === "done" || this.#hasNothingToDo(after)))
        this.set(after, { state: "done" });
      else this.set(after, { state: free ? "ready" : "waiting" });
    }
  }

  /**
   * What clears away after a replacement that was none.
   *
   * @param {string} key
   */
  #hasNothingToDo(key) {
    const node = this.tree.nodes.get(key);
    if (node?.direction !== "cleanup") return false;
    return node.before.some((one) => {
      const other = this.tree.nodes.get(one);
      const { state, operation } = this.get(one);
      const same = other?.path === node.path && other.direction === "forward";
      return same && state === "done" && operation === "update";
    });
  }
}
