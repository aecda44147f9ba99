/**
 * The event stream, shared by the whole page.
 *
 * After a disconnection it resumes from the last event received. If that is not possible because
 * the events are gone, listeners fetch everything again (`resync`). While the page is
 * hidden for long, the stream is closed, unless the user wants notifications: browsers allow six connections per server for all pages.
 */

import { signal } from "../vendor/preact.js";
import { address, credentials, problemOf } from "./client.js";
import { syncClock } from "./clock.js";
import { parseChunk } from "./event_parser.js";

/** @typedef {import("./documents.js").CloudEvent} CloudEvent */
/** @typedef {{event?: (event: CloudEvent) => void, resync?: () => void}} Listener */

/**
 * Milliseconds without data until the connection counts as lost; the server sends something at
 * least every 15 seconds.
 */
const SILENCE = 40_000;
const HIDDEN = 30_000;
const FIRST_PAUSE = 500;
const MAX_PAUSE = 10_000;

/**
 * State of the connection. since: time of the disconnection, in milliseconds since 1970.
 * @type {import("../vendor/preact.js").Signal<{state: "live" | "connecting" | "lost", since: number}>}
 */
export const connection = signal({ state: "connecting", since: 0 });

/** @type {Set<Listener>} */
const listeners = new Set();

/** Registers a listener until the returned function is called. @param {Listener} listener */
export function listen(listener) {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** @type {AbortController | null} */
let reading = null;

/** Follows the stream of a project and stops following any other. @param {string} project */
export function follow(project) {
  reading?.abort();
  reading = new AbortController();
  connection.value = { state: "connecting", since: 0 };
  read(project, reading.signal);
}

/** Whether the stream stays open while the page is hidden: someone waits for its notifications. */
export const followHidden = signal(false);

export function unfollow() {
  reading?.abort();
  reading = null;
}

/** @param {string} project @param {AbortSignal} ended */
async function read(project, ended) {
  let last = "";
  let pause = FIRST_PAUSE;
  // Pages may have fetched before the stream opened; events in between are not in it.
  let missed = true;
  while (!ended.aborted) {
    const outcome = await readOnce(project, ended, last, missed);
    last = outcome.last;
    if (ended.aborted) return;
    if (outcome.hidden) {
      missed = last === "";
      await untilVisible(ended);
      continue;
    }
    if (outcome.status === 401) {
      credentials.over();
      return;
    }
    // The server no longer knows the position: start again and have everything fetched.
    if (outcome.status === 410 || outcome.status === 400) last = "";
    missed = last === "";
    pause = outcome.read ? FIRST_PAUSE : Math.min(pause * 2, MAX_PAUSE);
    markLost();
    await sleep(pause, ended);
  }
}

/**
 * @typedef {{last: string, status: number, read: boolean, hidden: boolean}} Outcome
 * @param {string} project @param {AbortSignal} ended @param {string} last @param {boolean} missed
 * @returns {Promise<Outcome>}
 */
async function readOnce(project, ended, last, missed) {
  const controller = new AbortController();
  const outcome = { last, status: 0, read: false, hidden: false };
  const stop = () => controller.abort();
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
    const answer = await fetch(url, { headers, signal: controller.signal });
    outcome.status = answer.status;
    if (!answer.ok || !answer.body) throw await problemOf(answer);
    syncClock(answer);
    connection.value = { state: "live", since: 0 };
    if (missed) for (const listener of listeners) listener.resync?.();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let left = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      outcome.read = true;
      clearTimeout(silence);
      silence = setTimeout(stop, SILENCE);
      const result = parseChunk(left, value);
      left = result.left;
      for (const message of result.messages) {
        outcome.last = message.id || outcome.last;
        dispatch(JSON.parse(message.data));
      }
    }
  } catch {
    // Any error leads to a retry; the frame shows the disconnection.
  } finally {
    clearTimeout(silence);
    watch();
    ended.removeEventListener("abort", stop);
  }
  return outcome;
}

/** @param {CloudEvent} event */
function dispatch(event) {
  for (const listener of [...listeners]) listener.event?.(event);
}

function markLost() {
  if (connection.value.state !== "lost") connection.value = { state: "lost", since: Date.now() };
}

/**
 * Calls back once the page has been hidden for `ms`; returns a function that stops watching.
 * @param {number} ms @param {() => void} call
 */
function hiddenFor(ms, call) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const onVisibilityChange = () => {
    clearTimeout(timer);
    if (document.hidden && !followHidden.value) timer = setTimeout(call, ms);
  };
  document.addEventListener("visibilitychange", onVisibilityChange);
  onVisibilityChange();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", onVisibilityChange);
  };
}

/** @param {AbortSignal} ended @returns {Promise<void>} */
function untilVisible(ended) {
  return new Promise((resolve) => {
    const onVisibilityChange = () => {
      if (document.hidden && !ended.aborted) return;
      document.removeEventListener("visibilitychange", onVisibilityChange);
      resolve();
    };
    ended.addEventListener("abort", onVisibilityChange);
    document.addEventListener("visibilitychange", onVisibilityChange);
    onVisibilityChange();
  });
}

/** @param {number} ms @param {AbortSignal} ended @returns {Promise<void>} */
function sleep(ms, ended) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    ended.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
