// The live state of a graph: a signal per node, updated by events and new documents.
import { batch, signal } from "../vendor/preact.js";
import { fold, progressOf, stackOf } from "./fold/events.js";
import { Playback } from "./fold/playback.js";
import { treeOf } from "./tree.js";

/**
 * @typedef {import("./types.js").EventDocument} EventDocument
 * @typedef {import("./types.js").GraphDocument} GraphDocument
 * @typedef {import("./types.js").GraphNode} GraphNode
 * @typedef {import("./types.js").Progress} Progress
 * @typedef {import("./tree.js").Tree} Tree
 * @typedef {import("../vendor/preact.js").Signal<Progress>} ProgressSignal
 * @typedef {(keys: ReadonlySet<string> | null) => void} Listener null: the graph was replaced
 */

/** Maximum number of events kept for a document that may be older than they are. */
const MAX_EVENTS = 5000;

/**
 * @param {GraphDocument} document
 * @returns {GraphModel}
 */
export function graphModel(document) {
  return new GraphModel(document);
}

export class GraphModel {
  /** @param {GraphDocument} document */
  constructor(document) {
    /** @type {Tree} */
    this.tree = treeOf(document);
    /** @type {Map<string, Progress>} */
    this.known = new Map();
    /** @type {Map<string, ProgressSignal>} */
    this.signals = new Map();
    /**
     * Whether the server has a newer traversal or more nodes: fetch the graph and call `replace`.
     */
    this.outdated = signal(false);
    /** Increases when the graph has other nodes. */
    this.version = signal(0);
    /** @type {EventDocument[]} */
    this.recent = [];
    /** @type {Set<Listener>} */
    this.listeners = new Set();
    this.#setTree(this.tree);
  }

  /**
   * @param {string} key
   * @returns {GraphNode | undefined}
   */
  node(key) {
    return this.tree.nodes.get(key);
  }

  /**
   * @param {string} path from the root stack
   * @returns {GraphNode | undefined} the forward node, if there are two
   */
  at(path) {
    const matches = [...this.tree.nodes.values()].filter((node) => node.path === path);
    return matches.find((node) => node.direction === "forward") ?? matches[0];
  }

  /**
   * @param {string} key
   * @returns {ProgressSignal}
   */
  progress(key) {
    const existing = this.signals.get(key);
    if (existing) return existing;
    const known = /** @type {Progress} */ (this.known.get(key));
    const progressSignal = signal(known);
    this.signals.set(key, progressSignal);
    return progressSignal;
  }

  /**
   * Registers a listener, called with the changed keys once per event or document.
   *
   * @param {Listener} listener
   * @returns {() => void} removes the listener
   */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Applies an event of the stack or a nested stack. Other events, and those already in the
   * document, have no effect.
   *
   * @param {EventDocument} event
   */
  apply(event) {
    this.recent.push(event);
    if (this.recent.length > 2 * MAX_EVENTS) this.recent.splice(0, MAX_EVENTS);
    this.#change(this.#fold(event));
  }

  /**
   * Replaces the document; newer events are applied again.
   *
   * @param {GraphDocument} document
   */
  replace(document) {
    const tree = treeOf(document);
    const same = signature(tree) === signature(this.tree);
    this.tree = tree;
    this.outdated.value = false;
    if (!same) {
      this.known = new Map();
      this.signals = new Map();
    }
    this.#setTree(tree);
    if (!same) this.version.value++;
    this.recent = this.recent.filter((event) => this.#isNewer(event));
    for (const event of this.recent) this.#change(this.#fold(event));
    if (!same) for (const listener of this.listeners) listener(null);
  }

  /**
   * Shows changed breakpoints of a node until the next document.
   *
   * @param {string} key
   * @param {string[]} breakpoints points
   */
  setBreakpoints(key, breakpoints) {
    const known = this.known.get(key);
    if (known) this.#change(new Map([[key, { ...known, breakpoints }]]));
  }

  /**
   * Replays the events of the traversal from its beginning, instead of live updates.
   *
   * @param {readonly EventDocument[]} events in their order
   * @returns {{ length: number, seek: (count: number) => void }}
   */
  playback(events) {
    const playback = new Playback(this.tree, events);
    const all = new Set(this.tree.nodes.keys());
    const show = (/** @type {ReadonlySet<string>} */ keys) => {
      /** @type {Map<string, Progress>} */
      const changes = new Map();
      for (const key of keys) {
        const now = playback.now.get(key);
        if (now) changes.set(key, now);
      }
      this.#change(changes);
    };
    show(all);
    return {
      length: playback.length,
      seek: (count) => show(playback.seek(count)),
    };
  }

  /** @param {EventDocument} event */
  #fold(event) {
    if (!this.#isNewer(event)) return new Map();
    const { changes, outdated } = fold(this.tree, this.known, event);
    if (outdated) this.outdated.value = true;
    return changes;
  }

  /** @param {EventDocument} event */
  #isNewer(event) {
    const stackGraph = this.tree.stackGraphs.get(stackOf(event));
    return !stackGraph || event.sequence > stackGraph.sequence;
  }

  /** @param {Tree} tree */
  #setTree(tree) {
    /** @type {Map<string, Progress>} */
    const changes = new Map();
    for (const [key, document] of tree.documents) {
      const reported = progressOf(document);
      const before = this.known.get(key);
      // Events have details of the hook that the document lacks.
      if (before?.hook && reported.hook?.point === before.hook.point) reported.hook = before.hook;
      if (before && !reported.started) reported.started = before.started;
      if (before && !reported.ended) reported.ended = before.ended;
      changes.set(key, reported);
    }
    this.#change(changes);
  }

  /** @param {Map<string, Progress>} changes */
  #change(changes) {
    if (!changes.size) return;
    batch(() => {
      for (const [key, progress] of changes) {
        this.known.set(key, progress);
        const progressSignal = this.signals.get(key);
        if (progressSignal) progressSignal.value = progress;
      }
    });
    const keys = new Set(changes.keys());
    for (const listener of this.listeners) listener(keys);
  }
}

/** @param {Tree} tree */
function signature(tree) {
  return [...tree.stackGraphs.values()]
    .map(({ path, traversal, keys }) => `${path}:${traversal}:${keys.join()}`)
    .join("\n");
}
