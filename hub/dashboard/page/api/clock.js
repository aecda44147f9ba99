/** The server's time, by which deadlines run: a browser's own clock may be wrong. */

import { signal } from "../vendor/preact.js";

let ahead = 0;

/** Milliseconds since 1970, moved on each second. */
export const now = signal(Date.now());

/** Learn the server's time from an answer. @param {Response} answer */
export function learn(answer) {
  const said = Date.parse(answer.headers.get("Date") ?? "");
  if (Number.isNaN(said)) return;
  // Its fractions are not said: less than a second of difference is none.
  const differs = said - Date.now();
  ahead = Math.abs(differs) < 1500 ? 0 : differs;
  tick();
}

function tick() {
  now.value = Date.now() + ahead;
}

setInterval(tick, 1000);
