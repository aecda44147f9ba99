/** The events of one resource, newest first. */

import { Problem } from "../api/client.js";
import { Ago } from "../parts/ago.js";
import { useFetch } from "../parts/fetch.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./view_state.js").Subject} Subject */
/** @typedef {{id: string, event_time: string, resource_status: string, resource_status_reason: string}} Event */

const MAX_EVENTS = 50;

/** @param {{viewState: ViewState, subject: Subject}} props */
export function ResourceEvents({ viewState, subject }) {
  const { watched } = viewState;
  const { data, failure } = useFetch(
    () => fetchLatest(watched, subject),
    [subject.key],
    (again) =>
      watched.events.subscribe((events) => {
        const last = events.at(-1);
        if (!last || last.subject === subject.path) again();
      }),
  );
  const events = data.value ?? [];
  if (events.length === 0 && !failure.value) return null;
  return html`<details class="stack-values" open>
    <summary><h3>Events</h3></summary>
    <${ProblemBox} error=${failure.value} />
    <ol class="stack-list stack-resource-events">
      ${events.map(
        (event) => html`<li key=${event.id}>
          <span>${event.resource_status}</span>
          <span class="muted breaks">${event.resource_status_reason}</span>
          <${Ago} at=${event.event_time} />
        </li>`,
      )}
    </ol>
  </details>`;
}

/** @param {import("./watch.js").WatchedStack} watched @param {Subject} subject @returns {Promise<Event[]>} */
async function fetchLatest(watched, subject) {
  try {
    const path = `/events?limit=${MAX_EVENTS}&sort_keys=event_time&sort_dir=desc`;
    return (await watched.of(subject, path)).events;
  } catch (error) {
    // A resource without events is not data.
    if (error instanceof Problem && error.status === 404) return [];
    throw error;
  }
}
