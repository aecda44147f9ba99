/** Endpoints of providers to which the observer sends no more requests now. */

import { call } from "../api/client.js";
import { Ago } from "../parts/ago.js";
import { every, useFetch } from "../parts/fetch.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./types.js").PausedEndpoint} PausedEndpoint */

/** Polling interval in milliseconds: a budget that is used up causes no event. */
const POLL_INTERVAL = 15_000;

/** @param {{project: string}} props */
export function Budgets({ project }) {
  const { data, failure } = useFetch(
    async () => /** @type {PausedEndpoint[]} */ ((await call("GET", project, "/usage")).paused),
    [project],
    every(POLL_INTERVAL),
  );
  return html`<section class="card column" aria-labelledby="budgets">
    <h2 id="budgets">Requests to providers</h2>
    <${ProblemBox} error=${failure.value} />
    ${data.value?.length === 0 && html`<p>No endpoint limits the observations of this project.</p>`}
    <ul class="usage-rows">
      ${data.value?.map(
        (item) => html`<li key=${`${item.endpoint} ${item.resource_type}`}>
          <code class="breaks">${item.endpoint}</code>
          <span class="breaks">${item.requests_per_minute !== null ? `${item.used} requests ahead of the limit of ${item.requests_per_minute} per minute` : item.resource_type}</span>
          <span class="muted breaks">next requests <${Ago} at=${item.until} />: ${item.reason}</span>
        </li>`,
      )}
    </ul>
    <p class="muted">The operator sets budgets of requests in <code>[observer]</code> of the server configuration.
      All projects share them.</p>
  </section>`;
}
