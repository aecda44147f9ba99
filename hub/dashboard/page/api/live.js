/**
 * The event stream, read once for the whole page.
 *
 * It is resumed from the last event that was read, whatever broke it. Where that cannot be, as the
 * events in between are gone, whoever listens is told to fetch anew (`resync`). While the page is
 * hidden for long it is not read: browsers have six connections for all pages of a server.
 */

import { signal } from "../vendor/preact.js";
import { address, credentials, problemIn } from "./client.js";
import { learn } from "./clock.js";
import { taken } from "./lines.js";

/** @typedef {import("./documents.js").CloudEvent} CloudEvent */
/** @typedef {{event?: (event: CloudEvent) => void, resync?: () => void}} Listener */

/** The server says something every 15 seconds at least. */
const SILENCE = 40_000;
const HIDDEN = 30_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

/**
 * How it stands. since: milliseconds since 1970, of when it was lost.
 * @type {import("../vendor/preact.js").Signal<{state: "live" | "connecting" | "lost", since: number}>}
 */
export const connection = signal({ state: "connecting", since: 0 });

/** @type {Set<Listener>} */
const listeners = new Set();

/** Be told of what happens, until the function that is returned is called. @param {Listener} listener */
export function listen(listener) {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** @type {AbortController | null} */
let reading = null;

/** Read the stream of a project from now on, in the place of what was read. @param {string} project */
export function follow(project) {
  reading?.abort();
  reading = new AbortController();
  connection.value = { state: "connecting", since: 0 };
  read(project, reading.signal);
}

export function unfollow() {
  reading?.abort();
  reading = null;
}

/** @param {string} project @param {AbortSignal} ended */
async function read(project, ended) {
  let last = "";
  let pause = FIRST_PAUSE;
  // Pages may have read before the stream was open; what happened in between is not in it.
  let missed = true;
  while (!ended.aborted) {
    const outcome = await readOnce(project, ended, last, missed);
    last = outcome.last;
    if (ended.aborted) return;
    if (outcome.hidden) {
      missed = last === "";
      await visible(ended);
      continue;
    }
    if (outcome.status === 401) {
      credentials.over();
      return;
    }
    // Its place in the stream is known no more: begin anew, and have everything fetched.
    if (outcome.status === 410 || outcome.status === 400) last = "";
    missed = last === "";
    pause = outcome.read ? FIRST_PAUSE : Math.min(pause * 2, LONGEST_PAUSE);
    lost();
    await slept(pause, ended);
  }
}

/**
 * @typedef {{last: string, status: number, read: boolean, hidden: boolean}} Outcome
 * @param {string} project @param {AbortSignal} ended @param {string} last @param {boolean} missed
 * @returns {Promise<Outcome>}
 */
async function readOnce(project, ended, last, missed) {
  const given = new AbortController();
  const outcome = { last, status: 0, read: false, hidden: false };
  const stop = () => given.abort();
  ended.addEventListener("abort", stop);
  const watch = hiddenFor(HIDDEN, () => {
    outcome.hidden = true;
    stop();
  });
  let silence = setTimeout(stop, SILENCE);
  try {
    /** @type {Record<string, string>} */
    const headers = { ...credentials.headers };
    if (last) headers["Last-Event-ID"] = last;
    const url = address(project, "/events/stream");
    const answer = await fetch(url, { headers, signal: given.signal });
    outcome.status = answer.status;
    if (!answer.ok || !answer.body) throw await problemIn(answer);
    learn(answer);
    connection.value = { state: "live", since: 0 };
    if (missed) for (const one of listeners) one.resync?.();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let left = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      outcome.read = true;
      clearTimeout(silence);
      silence = setTimeout(stop, SILENCE);
      const found = taken(left, value);
      left = found.left;
      for (const message of found.messages) {
        outcome.last = message.id || outcome.last;
        tell(JSON.parse(message.data));
      }
    }
  } catch {
    // Whatever it was: it is tried again, and the bar of the frame says so.
  } finally {
    clearTimeout(silence);
    watch();
    ended.removeEventListener("abort", stop);
  }
  return outcome;
}

/** @param {CloudEvent} event */
function tell(event) {
  for (const one of [...listeners]) one.event?.(event);
}

function lost() {
  if (connection.value.state !== "lost") connection.value = { state: "lost", since: Date.now() };
}

/**
 * Call when the page was hidden for so long; returns what ends the watch.
 * @param {number} ms @param {() => void} call
 */
function hiddenFor(ms, call) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const look = () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(call, ms);
  };
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

/** @param {AbortSignal} ended @returns {Promise<void>} */
function visible(ended) {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !ended.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    ended.addEventListener("abort", look);
    document.addEventListener("visibilitychange", look);
    look();
  });
}

/** @param {number} ms @param {AbortSignal} ended @returns {Promise<void>} */
function slept(ms, ended) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    ended.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
