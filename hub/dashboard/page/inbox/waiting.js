/** The waiting hooks of the project, updated live, for the inbox and its counter. */

import { call, Problem } from "../api/client.js";
import { listen } from "../api/live.js";
import { computed, signal } from "../vendor/preact.js";
import { missingIds, waitingInOrder, withHooks, withoutHooks } from "./hook_cache.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */

/** Milliseconds to collect events before fetching hooks. */
const COLLECT_TIME = 150;
/** Milliseconds until a failed fetch is repeated. */
const RETRY_DELAY = 3000;
/** With more changed hooks than this, the whole list is fetched. */
const FETCH_ALL_THRESHOLD = 12;
const PAGE = 1000;
const MAX_PAGES = 5;

/** Hooks by ID: all waiting hooks and some ended ones. */
const known = signal(/** @type {import("./hook_cache.js").Known} */ (new Map()));
const loaded = signal(false);
let project = "";

/** Waiting hooks, by deadline; null until loaded. */
export const waiting = computed(() => (loaded.value ? waitingInOrder(known.value) : null));
/** The error of the last fetch. @type {import("../vendor/preact.js").Signal<unknown>} */
export const failure = signal(null);
/** Whether there are more hooks than were fetched. */
export const more = signal(false);

/** A cached hook. @param {string} id @returns {Hook | undefined} */
export function cachedHook(id) {
  return known.value.get(id);
}

/** Stores a hook returned by the server. @param {Hook} hook */
export function storeHook(hook) {
  known.value = withHooks(known.value, [hook]);
}

/** Fetches a hook. Throws Problem. @param {string} of project of the hook @param {string} id */
export async function readHook(of, id) {
  /** @type {Hook} */
  const response = await call("GET", of, `/hooks/${encodeURIComponent(id)}`);
  if (of === project) storeHook(response);
  return response;
}

/** Keeps `waiting` up to date until the returned function is called. @param {string} of */
export function watchInbox(of) {
  if (of !== project) {
    known.value = new Map();
    loaded.value = false;
    project = of;
  }
  const reader = new Reader(of);
  reader.readAll();
  const stopListening = listen({
    event: (event) => reader.read(affectedHookIds(event)),
    resync: () => reader.readAll(),
  });
  return () => {
    reader.end();
    stopListening();
  };
}

/** Repeats a failed fetch; set while the inbox is watched. */
export let tryAgain = () => {};

/** IDs of the hooks that an event may change. @param {CloudEvent} event @returns {string[]} */
function affectedHookIds(event) {
  if (event.type.startsWith("headgate.hook.")) return [event.data.hook.id];
  if (!event.type.startsWith("headgate.delivery.")) return [];
  if (event.data.event?.type !== "headgate.hook.waiting") return [];
  // The event names only the stack: one of its hooks was notified.
  const stack = event.data.stack?.id;
  return waitingInOrder(known.peek())
    .filter((item) => item.stack_id === stack)
    .map((item) => item.id);
}

/** Fetches hooks, one request at a time. */
class Reader {
  /** @param {string} of */
  constructor(of) {
    this.project = of;
    /** @type {Set<string>} */
    this.touched = new Set();
    this.all = false;
    this.ended = false;
    this.busy = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    tryAgain = () => this.readAll();
  }

  readAll() {
    this.all = true;
    this.plan(0);
  }

  /** @param {string[]} ids */
  read(ids) {
    if (ids.length === 0) return;
    for (const id of ids) this.touched.add(id);
    this.plan(COLLECT_TIME);
  }

  end() {
    this.ended = true;
    clearTimeout(this.timer);
  }

  /** @param {number} pause */
  plan(pause) {
    if (this.busy || this.ended) return;
    if (pause === 0) clearTimeout(this.timer);
    else if (this.timer !== undefined) return;
    this.timer = setTimeout(() => this.run(), pause);
  }

  async run() {
    this.timer = undefined;
    this.busy = true;
    const all = this.all || this.touched.size > FETCH_ALL_THRESHOLD;
    const ids = [...this.touched];
    this.all = false;
    this.touched.clear();
    let pause = COLLECT_TIME;
    try {
      if (all) await this.fetchAll();
      else await this.fetchSome(ids);
      failure.value = null;
    } catch (error) {
      if (this.ended) return;
      failure.value = error;
      this.all = true;
      pause = RETRY_DELAY;
    } finally {
      this.busy = false;
    }
    if (this.all || this.touched.size > 0) this.plan(pause);
  }

  async fetchAll() {
    /** @type {Hook[]} */
    const result = [];
    let marker = "";
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const query = `state=waiting&limit=${PAGE}${marker && `&marker=${marker}`}`;
      const answer = await call("GET", this.project, `/hooks?${query}`);
      result.push(...answer.hooks);
      marker = answer.next ?? "";
      if (!marker) break;
    }
    if (this.ended) return;
    const lost = marker ? [] : missingIds(known.value, result);
    more.value = marker !== "";
    known.value = withHooks(known.value, result);
    loaded.value = true;
    // Show the outcome of a few ended hooks; remove many at once.
    if (lost.length <= FETCH_ALL_THRESHOLD) await this.fetchSome(lost);
    else known.value = withoutHooks(known.value, lost);
  }

  /** @param {string[]} ids */
  async fetchSome(ids) {
    await Promise.all(ids.map((id) => this.fetchOne(id)));
  }

  /** @param {string} id */
  async fetchOne(id) {
    try {
      const response = await call("GET", this.project, `/hooks/${id}`);
      if (!this.ended) storeHook(response);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
      known.value = withoutHooks(known.value, [id]);
    }
  }
}
