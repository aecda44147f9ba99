/** The process roles of the server, for operators. */

import { call } from "../api/client.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { useFetched } from "../parts/fetched.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./types.js").Service} Service */

/** Polling interval in milliseconds: a process that dies causes no event. */
const ASKED = 15_000;

/** @param {{project: string}} props */
export function Services({ project }) {
  const { found, wrong } = useFetched(
    async () => /** @type {Service[]} */ ((await call("GET", project, "/services")).services),
    [project],
    (again) => {
      const timer = setInterval(() => {
        if (!document.hidden) again();
      }, ASKED);
      return () => clearInterval(timer);
    },
  );
  return html`<section class="card column" aria-labelledby="services">
    <h2 id="services">Services</h2>
    <${ProblemBox} error=${wrong.value} />
    <ul class="usage-rows">
      ${found.value?.map(
        (one) => html`<li key=${one.id}>
          <${Badge} state=${one.status === "up" ? "done" : "failed"} word=${one.status} />
          <code>${one.binary}</code>
          <span class="breaks">on ${one.host}</span>
          <span class="muted">since <${Ago} at=${utc(one.created_at)} />${one.status === "down" && html`, last seen <${Ago} at=${utc(one.updated_at)} />`}</span>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** Heat's times have no zone and are UTC. @param {string} time */
function utc(time) {
  return /Z|[+-]\d\d:\d\d$/.test(time) ? time : `${time}Z`;
}
