/** The server's clock: deadlines are computed with it, because the browser's clock may be wrong. */

import { signal } from "../vendor/preact.js";

let offset = 0;

/** Milliseconds since 1970, updated every second. */
export const now = signal(Date.now());

/** Synchronizes with the Date header of a response. @param {Response} answer */
export function syncClock(answer) {
  const serverTime = Date.parse(answer.headers.get("Date") ?? "");
  if (Number.isNaN(serverTime)) return;
  // The header has a resolution of one second: ignore smaller differences.
  const differs = serverTime - Date.now();
  offset = Math.abs(differs) < 1500 ? 0 : differs;
  tick();
}

function tick() {
  now.value = Date.now() + offset;
}

setInterval(tick, 1000);
