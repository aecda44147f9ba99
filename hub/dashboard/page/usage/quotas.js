/** The quotas of the project and their usage. */

import { call } from "../api/client.js";
import { listen } from "../api/live.js";
import { useFetch } from "../parts/fetch.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./types.js").Quota} Quota */

/** Share from which a quota counts as nearly full. */
const NEARLY_FULL = 0.9;

/** `stacks_per_project` -> "Stacks". @param {string} name */
function quotaLabel(name) {
  const words = name.replace(/_per_project$/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The usage as a share of 1, a state and a text. @param {Quota} quota */
export function usageOf({ limit, used }) {
  if (!limit) return { share: 0, state: "free", text: `${used}, unlimited` };
  const share = Math.min(1, used / limit);
  const state = used >= limit ? "full" : share >= NEARLY_FULL ? "nearly" : "some";
  const word = { full: ", full", nearly: ", nearly full", some: "" }[state];
  return { share, state, text: `${used} of ${limit}${word}` };
}

/** @param {{project: string}} props */
export function Quotas({ project }) {
  const { data, failure } = useFetch(
    async () => /** @type {Quota[]} */ ((await call("GET", project, "/quotas")).quotas),
    [project],
    (again) => listen({ event: again, resync: again }),
  );
  return html`<section class="card column" aria-labelledby="quotas">
    <h2 id="quotas">Quotas of ${project}</h2>
    <${ProblemBox} error=${failure.value} />
    <dl class="usage-quotas">
      ${data.value?.map((item) => html`<${Bar} key=${item.name} quota=${item} />`)}
    </dl>
    <p class="muted">A request that exceeds a quota is rejected. The operator sets quotas in${" "}
      <code>[quotas]</code> of the server configuration.</p>
  </section>`;
}

/** @param {{quota: Quota}} props */
function Bar({ quota }) {
  const { share, state, text } = usageOf(quota);
  return html`<div>
    <dt>${quotaLabel(quota.name)}</dt>
    <dd>
      <span>${text}</span>
      <span class="usage-bar" data-state=${state}><span style=${{ width: `${share * 100}%` }}></span></span>
    </dd>
  </div>`;
}
