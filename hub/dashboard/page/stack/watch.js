/**
 * The live state of a stack: fetched, then updated from the event stream.
 *
 * Events that arrive before the graph are kept and applied to it, so that none is missed. State
 * that events do not contain is fetched again when an event indicates that it may have changed.
 */

import { call, isAborted, Problem, stackPath } from "../api/client.js";
import { now } from "../api/clock.js";
import { connection, listen } from "../api/live.js";
import { graphModel } from "../graph/model.js";
import { coalesce } from "../parts/fetch.js";
import { effect, signal } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./types.js").Stack} Stack */
/** @typedef {import("./types.js").Traversal} Traversal */
/** @typedef {import("./types.js").Breakpoint} Breakpoint */
/** @typedef {import("./types.js").Gone} Gone */
/** @typedef {import("./types.js").DriftedResource} DriftedResource */
/** @typedef {import("../graph/model.js").GraphModel} GraphModel */
/** @template T @typedef {import("../vendor/preact.js").Signal<T>} Signal */

/** Milliseconds to wait for the stream before the first fetch. */
const STREAM_TIMEOUT = 1500;
const ABANDONED = "headgate.stack.abandon.completed";
/** Last parts of the event types that end a hook. @type {ReadonlySet<string>} */
const HOOK_ENDS = new Set(["answered", "expired", "superseded"]);
/** Milliseconds that an observation takes, and at least until the next look at its result. */
const OBSERVATION = 3_000;
const MIN_PAUSE = 10_000;
/** Maximum number of live events kept. */
const MAX_EVENTS = 5000;

export class WatchedStack {
  /** @param {string} project @param {string} name @param {string} id */
  constructor(project, name, id) {
    this.project = project;
    this.name = name;
    this.id = id;
    /** Names of nested stacks by ID. @type {Map<string, string>} */
    this.names = new Map();
    this.path = stackPath(name, id);
    /** @type {Signal<Stack | null>} */
    this.stack = signal(null);
    /** @type {Signal<GraphModel | null>} */
    this.model = signal(null);
    /** The traversal of the shown graph. @type {Signal<Traversal | null>} */
    this.traversal = signal(null);
    /** Waiting hooks of the stack and its nested stacks, oldest first. @type {Signal<Hook[]>} */
    this.hooks = signal([]);
    /** @type {Signal<Breakpoint[]>} */
    this.breakpoints = signal([]);
    /** Resources that differ from their recorded state, by path. @type {Signal<ReadonlyMap<string, DriftedResource>>} */
    this.drift = signal(new Map());
    /** The current error of fetching. @type {Signal<unknown>} */
    this.failure = signal(null);
    /** @type {Signal<Gone | null>} */
    this.gone = signal(null);
    /** Events received since the page was opened, in order. @type {Signal<CloudEvent[]>} */
    this.events = signal([]);
    this.ended = new AbortController();
    /** Errors by the fetch that failed. @type {Map<() => Promise<void>, unknown>} */
    this.failing = new Map();
    this.rereadStack = coalesce(() => this.#fetch(this.#readStack));
    this.rereadGraph = coalesce(() => this.#fetch(this.#readGraph));
    this.rereadHooks = coalesce(() => this.#fetch(this.#readHooks));
    this.rereadBreakpoints = coalesce(() => this.#fetch(this.#readBreakpoints));
    this.rereadDrift = coalesce(() => this.#fetch(this.#readDrift));
    /** When it is fetched again, in milliseconds since 1970. */
    this.rereadDriftAt = Infinity;
    /** @type {(() => void)[]} */
    this.stops = [];
  }

  /** Starts watching. */
  open() {
    this.stops = [
      listen({ event: (event) => this.#onEvent(event), resync: () => this.reread() }),
      this.#onceLive(),
      // An observation that finds no drift, or no answer, is no event.
      effect(() => {
        if (now.value < this.rereadDriftAt) return;
        this.rereadDriftAt = Infinity;
        this.rereadDrift();
      }),
      watchFocus(() => {
        this.rereadBreakpoints();
        this.rereadDrift();
      }),
    ];
  }

  /** Fetches everything again. */
  reread() {
    this.rereadStack();
    this.rereadGraph();
    this.rereadHooks();
    this.rereadBreakpoints();
    this.rereadDrift();
  }

  close() {
    this.ended.abort();
    for (const stop of this.stops) stop();
  }

  /** The API path of a resource. @param {import("./view_state.js").Subject} subject */
  pathOf({ stack, resource }) {
    return `${stackPath(stack.name, stack.id)}/resources/${encodeURIComponent(resource)}`;
  }

  /**
   * GET below the path of a resource of this stack or of a nested stack.
   * @param {import("./view_state.js").Subject} subject @param {string} rest @returns {Promise<any>}
   */
  of(subject, rest) {
    const { signal } = this.ended;
    return call("GET", this.project, this.pathOf(subject) + rest, undefined, { signal });
  }

  /** GET below the path of the stack. @param {string} rest @returns {Promise<any>} */
  get(rest) {
    return call("GET", this.project, this.path + rest, undefined, { signal: this.ended.signal });
  }

  /** Fetches when the stream is live; earlier if the stream takes too long. */
  #onceLive() {
    const timeout = setTimeout(() => this.reread(), STREAM_TIMEOUT);
    const stop = effect(() => {
      if (connection.value.state !== "live") return;
      clearTimeout(timeout);
      this.reread();
    });
    return () => {
      clearTimeout(timeout);
      stop();
    };
  }

  /** @param {() => Promise<void>} read */
  async #fetch(read) {
    if (this.ended.signal.aborted) return;
    try {
      await read.call(this);
      this.failing.delete(read);
    } catch (error) {
      if (this.ended.signal.aborted || isAborted(error)) return;
      if (error instanceof Problem && error.status === 404) this.#missing();
      else this.failing.set(read, error);
    }
    [this.failure.value = null] = this.failing.values();
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
    for (const stack of document.stacks) this.names.set(stack.stack_id, stack.stack_name);
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
    const path = `/hooks?state=waiting&limit=1000&stack=${encodeURIComponent(this.id)}`;
    const { hooks } = await call("GET", this.project, path, undefined, {
      signal: this.ended.signal,
    });
    this.hooks.value = hooks;
  }

  async #readBreakpoints() {
    this.breakpoints.value = (await this.get("/breakpoints")).breakpoints;
  }

  async #readDrift() {
    if (this.gone.value) return;
    const { resources, nested, observing, next_observation_at } = await this.get("/drift");
    this.rereadDriftAt = nextReading(observing, next_observation_at, now.value);
    this.drift.value = driftByPath(resources, nested);
  }

  #deleter() {
    const traversal = this.traversal.value;
    return traversal?.action === "DELETE" ? traversal.requested_by : "";
  }

  /** @param {CloudEvent} event */
  #onEvent(event) {
    if (!this.#isOurs(event)) return;
    this.events.value = [...this.events.value, event].slice(-MAX_EVENTS);
    const model = this.model.value;
    model?.apply(event);
    const [, of] = event.type.split(".");
    if (of === "hook") this.#onHookEvent(event);
    // The end of a repair ends drift, without an event about it unless the policy reports drift.
    if (of === "stack" || isDrift(event)) this.rereadDrift();
    if (of === "stack") {
      this.rereadHooks();
      // Only the graph shows nodes that finished without an event, and new nested stacks.
      this.rereadGraph();
      if (event.data.stack.id === this.id) this.rereadStack();
    }
    // An abandoned stack is no longer in the API; a deleted one still is.
    if (event.type === ABANDONED && event.data.stack.id === this.id) {
      this.gone.value = { how: "abandoned", by: "", at: event.time };
    }
    if (model?.outdated.value) this.rereadGraph();
  }

  /**
   * Adds or removes the hook immediately; other changes are fetched.
   * @param {CloudEvent} event
   */
  #onHookEvent(event) {
    const { hook, resource } = event.data;
    const moment = event.type.split(".").at(-1) ?? "";
    const others = this.hooks.value.filter((item) => item.id !== hook.id);
    if (moment === "waiting") this.hooks.value = [...others, { ...hook, resource }];
    else if (HOOK_ENDS.has(moment)) this.hooks.value = others;
    this.rereadHooks();
  }

  /** Whether an event belongs to this stack or to a nested stack. @param {CloudEvent} event */
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

/**
 * When an observation has probably ended, in milliseconds since 1970.
 * @param {boolean} observing @param {string | null} next of the next observation @param {number} now
 */
function nextReading(observing, next, now) {
  if (observing) return now + OBSERVATION;
  return next ? Math.max(Date.parse(next) + OBSERVATION, now + MIN_PAUSE) : Infinity;
}

/**
 * The resources that differ, and those that own their nested stacks, by path.
 * @param {DriftedResource[]} resources @param {Omit<DriftedResource, "differences">[]} nested
 * @returns {ReadonlyMap<string, DriftedResource>}
 */
function driftByPath(resources, nested) {
  const none = { differences: [], unrepaired: null, found_by: null, last_known: null };
  const owners = nested.map((item) => ({ ...item, ...none }));
  return new Map([...owners, ...resources].map((item) => [item.path, item]));
}

/** @param {CloudEvent} event */
function isDrift({ type, data }) {
  return type.startsWith("headgate.resource.drift.") || data?.hook?.point === "drift";
}

/** @param {() => void} call */
function watchFocus(call) {
  addEventListener("focus", call);
  return () => removeEventListener("focus", call);
}
