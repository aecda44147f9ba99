/** The events of one resource, newest first. */

import { Problem } from "../api/client.js";
import { Ago } from "../parts/ago.js";
import { useFetched } from "../parts/fetched.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./view_state.js").Subject} Subject */
/** @typedef {{id: string, event_time: string, resource_status: string, resource_status_reason: string}} Event */

const AT_MOST = 50;

/** @param {{viewState: ViewState, subject: Subject}} props */
export function ResourceEvents({ viewState, subject }) {
  const { watched } = viewState;
  const { found, wrong } = useFetched(
    () => latest(watched, subject),
    [subject.key],
    (again) =>
      watched.events.subscribe((events) => {
        const last = events.at(-1);
        if (!last || last.subject === subject.path) again();
      }),
  );
  const events = found.value ?? [];
  if (events.length === 0 && !wrong.value) return null;
  return html`<details class="stack-values" open>
    <summary><h3>Events</h3></summary>
    <${ProblemBox} error=${wrong.value} />
    <ol class="stack-list stack-happened">
      ${events.map(
        (one) => html`<li key=${one.id}>
          <span>${one.resource_status}</span>
          <span class="muted breaks">${one.resource_status_reason}</span>
          <${Ago} at=${one.event_time} />
        </li>`,
      )}
    </ol>
  </details>`;
}

/** @param {import("./watch.js").WatchedStack} watched @param {Subject} subject @returns {Promise<Event[]>} */
async function latest(watched, subject) {
  try {
    const path = `/events?limit=${AT_MOST}&sort_keys=event_time&sort_dir=desc`;
    return (await watched.of(subject, path)).events;
  } catch (error) {
    // A resource without events is not found.
    if (error instanceof Problem && error.status === 404) return [];
    throw error;
  }
}
