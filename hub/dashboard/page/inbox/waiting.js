/** The hooks that wait in the project, as they come and go: the inbox, and the number beside its name. */

import { call } from "../api/client.js";
import { listen } from "../api/live.js";
import { signal } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/** Oldest first; null: not known yet. @type {import("../vendor/preact.js").Signal<Hook[] | null>} */
export const waiting = signal(null);
/** What went wrong when they were asked for. @type {import("../vendor/preact.js").Signal<unknown>} */
export const wrong = signal(null);

/** How long further events are waited for before the inbox is read again, in milliseconds. */
const SOON = 150;

/** Keep `waiting` as it is there, until the function that is returned is called. @param {string} project */
export function watchInbox(project) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let ended = false;
  async function fetched() {
    timer = undefined;
    try {
      const found = await call("GET", project, "/hooks?state=waiting&limit=1000");
      if (ended) return;
      waiting.value = found.hooks;
      wrong.value = null;
    } catch (error) {
      if (!ended) wrong.value = error;
    }
  }
  function soon() {
    timer ??= setTimeout(fetched, SOON);
  }
  fetched();
  const stop = listen({
    event: (event) => {
      if (event.type.startsWith("headgate.hook.") || event.type.startsWith("headgate.stack."))
        soon();
    },
    resync: soon,
  });
  return () => {
    ended = true;
    clearTimeout(timer);
    stop();
    waiting.value = null;
  };
}
