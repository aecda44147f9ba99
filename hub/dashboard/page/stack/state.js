/** What is looked at on the page of a stack: which node, which view, which moment. */

import { ask, here } from "../app/route.js";
import { computed, signal } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../graph/model.js").GraphModel} GraphModel */
/** @typedef {import("../graph/shapes.js").GraphNode} GraphNode */
/** @typedef {import("./watch.js").WatchedStack} WatchedStack */

/**
 * at: how many of the events have happened.
 * @typedef {{events: import("../api/documents.js").CloudEvent[],
 *   at: import("../vendor/preact.js").Signal<number>, seek: (at: number) => void}} Replay
 *
 * What is looked at. resource: its name in its stack; empty: the stack as a whole.
 * @typedef {{key: string, path: string, resource: string, type: string,
 *   stack: {name: string, id: string}}} Subject
 */

export class Looking {
  /** @param {WatchedStack} watched */
  constructor(watched) {
    this.watched = watched;
    /**
     * The graph as it was, where somebody looks at that; null: as it is.
     * @type {import("../vendor/preact.js").Signal<GraphModel | null>}
     */
    this.past = signal(null);
    /**
     * Where in its events that is, and how to go elsewhere.
     * @type {import("../vendor/preact.js").Signal<Replay | null>}
     */
    this.replay = signal(null);
    /** The key of the node that is looked at. @type {import("../vendor/preact.js").Signal<string | null>} */
    this.selected = signal(null);
    this.model = computed(() => this.past.value ?? watched.model.value);
    /** @type {import("../vendor/preact.js").ReadonlySignal<GraphNode | null>} */
    this.node = computed(() => {
      const model = this.model.value;
      const key = this.selected.value;
      if (!model || key === null) return null;
      // Another traversal has other nodes.
      model.version.value;
      return model.node(key) ?? null;
    });
    /**
     * A resource that is looked at, and has no node in the graph.
     * @type {import("../vendor/preact.js").Signal<Subject | null>}
     */
    this.other = signal(null);
    this.subject = computed(() => {
      const node = this.node.value;
      return node ? this.#subjectOf(node) : this.other.value;
    });
    /** The hook that the keys of the debugger answer: at the node, else the oldest. */
    this.hook = computed(() => {
      const { hooks } = watched;
      const key = this.selected.value;
      return hooks.value.find((one) => keyOfHook(one) === key) ?? hooks.value[0] ?? null;
    });
  }

  /** @param {string | null} key */
  select(key) {
    this.other.value = null;
    this.selected.value = key;
    ask({ at: this.node.value?.path ?? "" });
  }

  /** Look at a resource without a node. @param {Subject} subject */
  look(subject) {
    this.select(null);
    this.other.value = subject;
  }

  /** @param {GraphNode} node @returns {Subject} */
  #subjectOf(node) {
    const { key, path, name, type } = node;
    return { key, path, resource: name, type, stack: this.stackOf(node) };
  }

  /** Select what the address names, once there is a graph. */
  selectAsked() {
    const at = here.value.query.get("at");
    const found = at ? this.model.value?.at(at) : undefined;
    if (found && this.selected.value === null) this.selected.value = found.key;
  }

  /** The stack that a node is in: its name and id, as far as they are known. @param {GraphNode} node */
  stackOf(node) {
    const { watched } = this;
    const walk = this.model.value?.tree.walks.get(node.stack);
    const name = walk?.stackId ? watched.names.get(walk.stackId) : undefined;
    if (walk?.stackId && name) return { name, id: walk.stackId };
    return { name: watched.name, id: watched.id };
  }

  /** A path from the shown stack on: as breakpoints are set. @param {{path: string}} of */
  within({ path }) {
    const root = this.model.value?.tree.root ?? "";
    return root ? path.slice(root.length + 1) : path;
  }
}

/** The key of the node that waits. @param {Hook} hook */
export function keyOfHook(hook) {
  const name = hook.resource_name;
  const stack = name ? hook.path.slice(0, -name.length).replace(/\/$/, "") : hook.path;
  return `${stack}#${hook.node}`;
}
