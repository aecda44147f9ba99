/** What the project may use, and how much of it is used. */

import { call } from "../api/client.js";
import { listen } from "../api/live.js";
import { ProblemBox } from "../parts/problem.js";
import { useRead } from "../parts/read.js";
import { html } from "../vendor/preact.js";

/** @typedef {import("./shapes.js").Quota} Quota */

/** From here on a bar says that it is nearly full. */
const NEARLY = 0.9;

/** `stacks_per_project` -> "Stacks". @param {string} name */
export function named(name) {
  const words = name.replace(/_per_project$/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** How full: a share of 1, and its word. @param {Quota} quota */
export function fill({ limit, used }) {
  if (!limit) return { share: 0, state: "free", says: `${used}, unlimited` };
  const share = Math.min(1, used / limit);
  const state = used >= limit ? "full" : share >= NEARLY ? "nearly" : "some";
  const word = { full: ", full", nearly: ", nearly full", some: "" }[state];
  return { share, state, says: `${used} of ${limit}${word}` };
}

/** @param {{project: string}} props */
export function Quotas({ project }) {
  const { found, wrong } = useRead(
    async () => /** @type {Quota[]} */ ((await call("GET", project, "/quotas")).quotas),
    [project],
    (again) => listen({ event: again, resync: again }),
  );
  return html`<section class="card column" aria-labelledby="quotas">
    <h2 id="quotas">What ${project} uses</h2>
    <${ProblemBox} error=${wrong.value} />
    <dl class="usage-quotas">
      ${found.value?.map((one) => html`<${Bar} key=${one.name} quota=${one} />`)}
    </dl>
    <p class="muted">A change beyond one of them is refused whole. Whoever runs the server sets them:${" "}
      <code>[quotas]</code> in its configuration.</p>
  </section>`;
}

/** @param {{quota: Quota}} props */
function Bar({ quota }) {
  const { share, state, says } = fill(quota);
  return html`<div>
    <dt>${named(quota.name)}</dt>
    <dd>
      <span>${says}</span>
      <span class="usage-bar" data-state=${state}><span style=${{ width: `${share * 100}%` }}></span></span>
    </dd>
  </div>`;
}
