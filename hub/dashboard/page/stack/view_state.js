/** View state of the stack page: selected node, past graph and timeline position. */

import { currentPlace, href, navigate, setQuery } from "../app/route.js";
import { newArrangement } from "../graph/drawing/arrangement.js";
import { badgeText } from "../parts/drift_text.js";
import { computed, signal } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../graph/model.js").GraphModel} GraphModel */
/** @typedef {import("../graph/types.js").GraphNode} GraphNode */
/** @typedef {import("./watch.js").WatchedStack} WatchedStack */

/**
 * at: number of events applied.
 * @typedef {{events: import("../api/documents.js").CloudEvent[],
 *   at: import("../vendor/preact.js").Signal<number>, seek: (at: number) => void}} Replay
 *
 * A selected resource. resource: its name in its stack; "" for the stack as a whole.
 * @typedef {{key: string, path: string, resource: string, type: string,
 *   stack: {name: string, id: string}}} Subject
 */

export class ViewState {
  /** @param {WatchedStack} watched */
  constructor(watched) {
    this.watched = watched;
    /**
     * The past graph while the timeline is open; null: the live graph.
     * @type {import("../vendor/preact.js").Signal<GraphModel | null>}
     */
    this.past = signal(null);
    /**
     * Position in the timeline, and how to change it.
     * @type {import("../vendor/preact.js").Signal<Replay | null>}
     */
    this.replay = signal(null);
    /** Key of the selected node. @type {import("../vendor/preact.js").Signal<string | null>} */
    this.selected = signal(null);
    /** How the user has arranged the graph; the past graph takes it over. */
    this.arrangement = newArrangement();
    this.model = computed(() => this.past.value ?? watched.model.value);
    /** @type {import("../vendor/preact.js").ReadonlySignal<GraphNode | null>} */
    this.node = computed(() => {
      const model = this.model.value;
      const key = this.selected.value;
      if (!model || key === null) return null;
      // Recompute after a change of traversal, which has other nodes.
      model.version.value;
      return model.node(key) ?? null;
    });
    /**
     * A selected resource without a node in the graph.
     * @type {import("../vendor/preact.js").Signal<Subject | null>}
     */
    this.other = signal(null);
    this.subject = computed(() => {
      const node = this.node.value;
      return node ? this.#subjectOf(node) : this.other.value;
    });
    /**
     * Observed states of the drift that the graph shows, by path.
     * @type {import("../vendor/preact.js").ReadonlySignal<ReadonlyMap<string, string>>}
     */
    this.drift = computed(
      () =>
        new Map(
          [...(this.past.value ? [] : watched.drift.value.values())]
            .map((one) => /** @type {[string, string]} */ ([one.path, badgeText(one) ?? ""]))
            .filter(([, text]) => text),
        ),
    );
    /**
     * Waiting hooks of nodes. Hooks about drift belong to no change: the debugger has none of them.
     * @type {import("../vendor/preact.js").ReadonlySignal<Hook[]>}
     */
    this.nodeHooks = computed(() => watched.hooks.value.filter((hook) => hook.node !== null));
    /** The hook that the debugger answers: that of the selected node, else the oldest. */
    this.hook = computed(() => {
      const hooks = this.nodeHooks.value;
      const key = this.selected.value;
      return hooks.find((hook) => this.keyOf(hook) === key) ?? hooks[0] ?? null;
    });
  }

  /** @param {string | null} key */
  select(key) {
    this.other.value = null;
    this.selected.value = key;
    setQuery({ at: this.node.value?.path ?? "" });
  }

  /**
   * Selects the node of a hook, where it is answered. A resource may have no node in the graph: then
   * the page of the hook is opened.
   * @param {Hook} hook
   */
  selectHook(hook) {
    const key = this.keyOf(hook);
    if (key) this.select(key);
    else navigate(href(this.watched.project, "inbox", hook.id));
  }

  /**
   * Key of the node at which a hook waits; of a hook about drift, that of its resource; "" without one.
   * @param {Hook} hook
   */
  keyOf(hook) {
    if (hook.node === null) return this.model.value?.at(hook.path)?.key ?? "";
    const name = hook.resource_name;
    const stack = name ? hook.path.slice(0, -name.length).replace(/\/$/, "") : hook.path;
    return `${stack}#${hook.node}`;
  }

  /** Selects a resource without a node. @param {Subject} subject */
  selectResource(subject) {
    this.select(null);
    this.other.value = subject;
  }

  /** @param {GraphNode} node @returns {Subject} */
  #subjectOf(node) {
    const { key, path, name, type } = node;
    return { key, path, resource: name, type, stack: this.stackOf(node) };
  }

  /** Selects the node named in the page address, once the graph is loaded. */
  selectFromAddress() {
    const at = currentPlace.value.query.get("at");
    const result = at ? this.model.value?.at(at) : undefined;
    if (result && this.selected.value === null) this.selected.value = result.key;
  }

  /** Name and ID of the stack of a node, as far as they are known. @param {GraphNode} node */
  stackOf(node) {
    const { watched } = this;
    const stackGraph = this.model.value?.tree.stackGraphs.get(node.stack);
    const name = stackGraph?.stackId ? watched.names.get(stackGraph.stackId) : undefined;
    if (stackGraph?.stackId && name) return { name, id: stackGraph.stackId };
    return { name: watched.name, id: watched.id };
  }

  /**
   * A path relative to the shown stack, as the breakpoint API expects.
   * @param {{path: string}} of
   */
  relativePath({ path }) {
    const root = this.model.value?.tree.root ?? "";
    return root ? path.slice(root.length + 1) : path;
  }
}
