/** The hooks that wait in the project, as they come and go: the inbox, and the number beside its name. */

import { call, Problem } from "../api/client.js";
import { listen } from "../api/live.js";
import { computed, signal } from "../vendor/preact.js";
import { forgotten, inOrder, learned, missing } from "./known.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */

/** How long further events are waited for before hooks are read again, in milliseconds. */
const SOON = 150;
/** When what could not be read is asked for again, in milliseconds. */
const LATER = 3000;
/** From so many on, all are read at once. */
const MANY = 12;
const PAGE = 1000;
const MOST_PAGES = 5;

/** What is known, by id: all that wait, and some that do no more. */
const known = signal(/** @type {import("./known.js").Known} */ (new Map()));
const loaded = signal(false);
let project = "";

/** Oldest first; null: not known yet. */
export const waiting = computed(() => (loaded.value ? inOrder(known.value) : null));
/** What went wrong when they were asked for. @type {import("../vendor/preact.js").Signal<unknown>} */
export const wrong = signal(null);
/** Whether there are more than were read. */
export const more = signal(false);

/** As far as it is known. @param {string} id @returns {Hook | undefined} */
export function hookOf(id) {
  return known.value.get(id);
}

/** Take a hook as the server says it is now. @param {Hook} hook */
export function learn(hook) {
  known.value = learned(known.value, [hook]);
}

/** Read one anew. Throws Problem. @param {string} of its project @param {string} id */
export async function readHook(of, id) {
  /** @type {Hook} */
  const found = await call("GET", of, `/hooks/${encodeURIComponent(id)}`);
  if (of === project) learn(found);
  return found;
}

/** Keep `waiting` as it is there, until the function that is returned is called. @param {string} of */
export function watchInbox(of) {
  if (of !== project) {
    known.value = new Map();
    loaded.value = false;
    project = of;
  }
  const reader = new Reader(of);
  reader.readAll();
  const stopListening = listen({
    event: (event) => reader.read(touchedBy(event)),
    resync: () => reader.readAll(),
  });
  return () => {
    reader.end();
    stopListening();
  };
}

/** Try again to read what could not be read: set while the inbox is watched. */
export let tryAgain = () => {};

/** The ids of hooks that an event is about. @param {CloudEvent} event @returns {string[]} */
function touchedBy(event) {
  if (event.type.startsWith("headgate.hook.")) return [event.data.hook.id];
  if (!event.type.startsWith("headgate.delivery.")) return [];
  if (event.data.event?.type !== "headgate.hook.waiting") return [];
  // It names the stack alone: one of its hooks was told of.
  const stack = event.data.stack?.id;
  return inOrder(known.peek())
    .filter((one) => one.stack_id === stack)
    .map((one) => one.id);
}

/** Reads what is to be read, one request after another. */
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
    this.plan(SOON);
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
    const all = this.all || this.touched.size > MANY;
    const ids = [...this.touched];
    this.all = false;
    this.touched.clear();
    let pause = SOON;
    try {
      if (all) await this.fetchAll();
      else await this.fetchSome(ids);
      wrong.value = null;
    } catch (error) {
      if (this.ended) return;
      wrong.value = error;
      this.all = true;
      pause = LATER;
    } finally {
      this.busy = false;
    }
    if (this.all || this.touched.size > 0) this.plan(pause);
  }

  async fetchAll() {
    /** @type {Hook[]} */
    const found = [];
    let marker = "";
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const query = `state=waiting&limit=${PAGE}${marker && `&marker=${marker}`}`;
      const answer = await call("GET", this.project, `/hooks?${query}`);
      found.push(...answer.hooks);
      marker = answer.next ?? "";
      if (!marker) break;
    }
    if (this.ended) return;
    const lost = marker ? [] : missing(known.value, found);
    more.value = marker !== "";
    known.value = learned(known.value, found);
    loaded.value = true;
    // Few are told of as they ended; of many it is enough that they are gone.
    if (lost.length <= MANY) await this.fetchSome(lost);
    else known.value = forgotten(known.value, lost);
  }

  /** @param {string[]} ids */
  async fetchSome(ids) {
    await Promise.all(ids.map((id) => this.fetchOne(id)));
  }

  /** @param {string} id */
  async fetchOne(id) {
    try {
      const found = await call("GET", this.project, `/hooks/${id}`);
      if (!this.ended) learn(found);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
      known.value = forgotten(known.value, [id]);
    }
  }
}
