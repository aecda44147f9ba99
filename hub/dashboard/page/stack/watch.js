/**
 * A stack as it is now: fetched, then kept up to date by the event stream.
 *
 * What is read of the stream before a document came is kept by the graph's model and applied to it,
 * so nothing is missed in between. What events do not say is fetched again when they tell that it
 * may have changed.
 */

import { call, isAborted, Problem } from "../api/client.js";
import { connection, listen } from "../api/live.js";
import { stackPath } from "../api/stack.js";
import { graphModel } from "../graph/model.js";
import { repeated } from "../parts/repeated.js";
import { effect, signal } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./shapes.js").Stack} Stack */
/** @typedef {import("./shapes.js").Traversal} Traversal */
/** @typedef {import("./shapes.js").Breakpoint} Breakpoint */
/** @typedef {import("./shapes.js").Gone} Gone */
/** @typedef {import("../graph/model.js").GraphModel} GraphModel */
/** @template T @typedef {import("../vendor/preact.js").Signal<T>} Signal */

/** How long the stream is waited for before the first look, in milliseconds. */
const STREAM = 1500;
const ABANDONED = "headgate.stack.abandon.completed";
/** After these a hook waits no more. @type {ReadonlySet<string>} */
const ENDS = new Set(["answered", "expired", "superseded"]);
/** Events of this page's life that are kept. */
const KEPT = 5000;

export class WatchedStack {
  /** @param {string} project @param {string} name @param {string} id */
  constructor(project, name, id) {
    this.project = project;
    this.name = name;
    this.id = id;
    /** Of stacks inside, by their ids. @type {Map<string, string>} */
    this.names = new Map();
    this.path = stackPath(name, id);
    /** @type {Signal<Stack | null>} */
    this.stack = signal(null);
    /** @type {Signal<GraphModel | null>} */
    this.model = signal(null);
    /** Of the graph that is shown. @type {Signal<Traversal | null>} */
    this.traversal = signal(null);
    /** Those that wait, here and inside; oldest first. @type {Signal<Hook[]>} */
    this.hooks = signal([]);
    /** @type {Signal<Breakpoint[]>} */
    this.breakpoints = signal([]);
    /** Why what was asked for last could not be had. @type {Signal<unknown>} */
    this.wrong = signal(null);
    /** @type {Signal<Gone | null>} */
    this.gone = signal(null);
    /** Those that came while it was watched, in their order. @type {Signal<CloudEvent[]>} */
    this.events = signal([]);
    this.ended = new AbortController();
    /** What went wrong, by what was read. @type {Map<() => Promise<void>, unknown>} */
    this.failing = new Map();
    this.rereadStack = repeated(() => this.#look(this.#readStack));
    this.rereadGraph = repeated(() => this.#look(this.#readGraph));
    this.rereadHooks = repeated(() => this.#look(this.#readHooks));
    this.rereadBreakpoints = repeated(() => this.#look(this.#readBreakpoints));
    /** @type {(() => void)[]} */
    this.stops = [];
  }

  /** Begin to watch. */
  open() {
    this.stops = [
      listen({ event: (event) => this.#hear(event), resync: () => this.reread() }),
      this.#onceLive(),
      watchFocus(() => this.rereadBreakpoints()),
    ];
  }

  /** Fetch everything anew. */
  reread() {
    this.rereadStack();
    this.rereadGraph();
    this.rereadHooks();
    this.rereadBreakpoints();
  }

  close() {
    this.ended.abort();
    for (const stop of this.stops) stop();
  }

  /** Where a resource is in the API. @param {import("./state.js").Subject} subject */
  pathOf({ stack, resource }) {
    return `${stackPath(stack.name, stack.id)}/resources/${encodeURIComponent(resource)}`;
  }

  /**
   * Ask the API about a resource, here or inside.
   * @param {import("./state.js").Subject} subject @param {string} rest @returns {Promise<any>}
   */
  of(subject, rest) {
    const { signal } = this.ended;
    return call("GET", this.project, this.pathOf(subject) + rest, undefined, { signal });
  }

  /** Ask the API about this stack. @param {string} rest @returns {Promise<any>} */
  get(rest) {
    return call("GET", this.project, this.path + rest, undefined, { signal: this.ended.signal });
  }

  /**
   * The first look is taken when the stream is read; and again if it took that one too long.
   */
  #onceLive() {
    const late = setTimeout(() => this.reread(), STREAM);
    const stop = effect(() => {
      if (connection.value.state !== "live") return;
      clearTimeout(late);
      this.reread();
    });
    return () => {
      clearTimeout(late);
      stop();
    };
  }

  /** @param {() => Promise<void>} read */
  async #look(read) {
    if (this.ended.signal.aborted) return;
    try {
      await read.call(this);
      this.failing.delete(read);
    } catch (error) {
      if (this.ended.signal.aborted || isAborted(error)) return;
      if (error instanceof Problem && error.status === 404) this.#missing();
      else this.failing.set(read, error);
    }
    [this.wrong.value = null] = this.failing.values();
  }

  #missing() {
    this.gone.value ??= { how: "missing", by: "", at: null };
  }

  async #readStack() {
    const { stack } = await this.get("");
    this.stack.value = stack;
    if (stack.stack_status !== "DELETE_COMPLETE") return;
    this.gone.value = { how: "deleted", by: this.#deleter(), at: stack.deletion_time };
  }

  async #readGraph() {
    const document = await this.get("/graph?nested=true");
    for (const one of document.stacks) this.names.set(one.stack_id, one.stack_name);
    const model = this.model.value;
    if (model) model.replace(document);
    else this.model.value = this.#modelOf(document);
    this.traversal.value = document.traversal;
    if (this.gone.value?.by === "") this.gone.value = { ...this.gone.value, by: this.#deleter() };
  }

  /** @param {any} document */
  #modelOf(document) {
    const model = graphModel(document);
    for (const event of this.events.value) model.apply(event);
    return model;
  }

  async #readHooks() {
    const asked = `/hooks?state=waiting&limit=1000&stack=${encodeURIComponent(this.id)}`;
    const { hooks } = await call("GET", this.project, asked, undefined, {
      signal: this.ended.signal,
    });
    this.hooks.value = hooks;
  }

  async #readBreakpoints() {
    this.breakpoints.value = (await this.get("/breakpoints")).breakpoints;
  }

  #deleter() {
    const traversal = this.traversal.value;
    return traversal?.action === "DELETE" ? traversal.requested_by : "";
  }

  /** @param {CloudEvent} event */
  #hear(event) {
    if (!this.#isOurs(event)) return;
    this.events.value = [...this.events.value, event].slice(-KEPT);
    const model = this.model.value;
    model?.apply(event);
    const [, of] = event.type.split(".");
    if (of === "hook") this.#hearOfHook(event);
    if (of === "stack") {
      this.rereadHooks();
      // What ended without a word, and a stack inside that came to be, the graph alone tells.
      this.rereadGraph();
      if (event.data.stack.id === this.id) this.rereadStack();
    }
    // What was abandoned is not known any more; of what was deleted the stack itself tells.
    if (event.type === ABANDONED && event.data.stack.id === this.id) {
      this.gone.value = { how: "forgotten", by: "", at: event.time };
    }
    if (model?.stale.value) this.rereadGraph();
  }

  /**
   * One that waits, or does no more, is known at once; what else becomes of it is read.
   * @param {CloudEvent} event
   */
  #hearOfHook(event) {
    const { hook, resource } = event.data;
    const moment = event.type.split(".").at(-1) ?? "";
    const others = this.hooks.value.filter((one) => one.id !== hook.id);
    if (moment === "waiting") this.hooks.value = [...others, { ...hook, resource }];
    else if (ENDS.has(moment)) this.hooks.value = others;
    this.rereadHooks();
  }

  /** Of this stack, or of one inside of it. @param {CloudEvent} event */
  #isOurs(event) {
    const stack = event.data?.stack;
    if (!stack) return false;
    if (stack.id === this.id || event.rootstack === this.id) return true;
    const shown = this.stack.value;
    return Boolean(
      shown?.root &&
        event.rootstack === shown.root &&
        event.stackpath?.startsWith(`${shown.path}/`),
    );
  }
}

/** @param {() => void} call */
function watchFocus(call) {
  addEventListener("focus", call);
  return () => removeEventListener("focus", call);
}
