/** The process roles of the server, for operators. */

import { call } from "../api/client.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { every, useFetch } from "../parts/fetch.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./types.js").Service} Service */

/** Polling interval in milliseconds: a process that dies causes no event. */
const POLL_INTERVAL = 15_000;

/** @param {{project: string}} props */
export function Services({ project }) {
  const { data, failure } = useFetch(
    async () => /** @type {Service[]} */ ((await call("GET", project, "/services")).services),
    [project],
    every(POLL_INTERVAL),
  );
  return html`<section class="card column" aria-labelledby="services">
    <h2 id="services">Services</h2>
    <${ProblemBox} error=${failure.value} />
    <ul class="usage-rows">
      ${data.value?.map(
        (item) => html`<li key=${item.id}>
          <${Badge} state=${item.status === "up" ? "done" : "failed"} word=${item.status} />
          <code>${item.binary}</code>
          <span class="breaks">on ${item.host}</span>
          <span class="muted">started <${Ago} at=${utc(item.created_at)} />${item.status === "down" && html`, last seen <${Ago} at=${utc(item.updated_at)} />`}</span>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** Heat's times have no zone and are UTC. @param {string} time */
function utc(time) {
  return /Z|[+-]\d\d:\d\d$/.test(time) ? time : `${time}Z`;
}
