/** Requests of the observer to endpoints of providers: those of today, and what waits. */

import { call } from "../api/client.js";
import { Ago } from "../parts/ago.js";
import { every, useFetch } from "../parts/fetch.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./types.js").PausedEndpoint} PausedEndpoint */
/** @typedef {import("./types.js").RequestedEndpoint} RequestedEndpoint */
/** @typedef {{paused: PausedEndpoint[], endpoints: RequestedEndpoint[]}} Requests */

/** Polling interval in milliseconds: a budget that is used up causes no event. */
const POLL_INTERVAL = 15_000;

/** @param {RequestedEndpoint} item */
export function requestsOf({ requests, used, requests_per_minute }) {
  const sent = requests === 1 ? "1 request" : `${requests} requests`;
  return requests_per_minute === null
    ? sent
    : `${sent}; ${used} of ${requests_per_minute} per minute used by all projects`;
}

/** @param {{project: string}} props */
export function Budgets({ project }) {
  const { data, failure } = useFetch(
    async () => /** @type {Requests} */ (await call("GET", project, "/usage")),
    [project],
    every(POLL_INTERVAL),
  );
  return html`<section class="card column" aria-labelledby="budgets">
    <h2 id="budgets">Requests to providers</h2>
    <${ProblemBox} error=${failure.value} />
    ${data.value?.paused.length === 0 && html`<p>No endpoint limits the observations of this project.</p>`}
    <ul class="usage-rows">
      ${data.value?.paused.map(
        (item) => html`<li key=${`${item.endpoint} ${item.resource_type}`}>
          <code class="breaks">${item.endpoint}</code>
          <span class="breaks">${item.requests_per_minute !== null ? `${item.used} requests ahead of the limit of ${item.requests_per_minute} per minute` : item.resource_type}</span>
          <span class="muted breaks">next requests <${Ago} at=${item.until} />: ${item.reason}</span>
        </li>`,
      )}
    </ul>
    ${data.value && data.value.endpoints.length > 0 && html`<h3>Observations today</h3>`}
    <ul class="usage-rows">
      ${data.value?.endpoints.map(
        (item) => html`<li key=${item.endpoint}>
          <code class="breaks">${item.endpoint}</code>
          <span class="muted breaks">${requestsOf(item)}</span>
        </li>`,
      )}
    </ul>
    <p class="muted">The operator sets budgets of requests in <code>[observer]</code> of the server configuration.
      All projects share them.</p>
  </section>`;
}
