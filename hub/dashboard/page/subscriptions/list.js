/** The subscriptions of a project, with how each fares. */

import { call } from "../api/client.js";
import { listen } from "../api/live.js";
import { may } from "../api/session.js";
import { ask, here, href } from "../app/route.js";
import { Badge } from "../parts/badge.js";
import { ProblemBox } from "../parts/problem.js";
import { useRead } from "../parts/read.js";
import { html } from "../vendor/preact.js";
import { health } from "./health.js";
import { Recent } from "./recent.js";
import { shownTarget, wanted } from "./wanted.js";

/** @typedef {import("./shapes.js").Subscription} Subscription */

/** Subscriptions on one page: the latest deliveries of each are asked for, too. */
const PAGE = 25;
/** After these the list may be another. */
const TOLD = /^headgate\.(subscription\.|delivery\.dead|delivery\.delivered)/;

/** @param {{project: string}} props */
export function SubscriptionList({ project }) {
  const from = here.value.query.get("from") ?? "";
  const { found, wrong } = useRead(
    async () => {
      const marker = from ? `&marker=${encodeURIComponent(from)}` : "";
      const said = await call("GET", project, `/subscriptions?limit=${PAGE}${marker}`);
      return /** @type {{subscriptions: Subscription[], next: string | null}} */ (said);
    },
    [project, from],
    (again) => listen({ event: (event) => TOLD.test(event.type) && again(), resync: again }),
  );
  const said = found.value;
  return html`<div class="page-head">
      <h1>Subscriptions</h1>
      ${may("write") && html`<div class="acts"><a class="button first" href=${href(project, "subscriptions", "new")}>New subscription</a></div>`}
    </div>
    <${ProblemBox} error=${wrong.value} />
    ${said && said.subscriptions.length === 0 && html`<${None} />`}
    <ul class="subscriptions-list">
      ${said?.subscriptions.map((one) => html`<${Card} key=${one.id} project=${project} one=${one} />`)}
    </ul>
    ${
      (from || said?.next) &&
      html`<nav class="row" aria-label="Pages of the list">
        ${from && html`<button onClick=${() => ask({ from: "" })}>First page</button>`}
        ${said?.next && html`<button onClick=${() => ask({ from: String(said.next) })}>Next page</button>`}
      </nav>`
    }`;
}

function None() {
  return html`<p class="card">
    Nobody is told of anything but those who look. A subscription sends events to a webhook, or to a
    message broker: <code>headgate subscription create URL</code>
  </p>`;
}

/** @param {{project: string, one: Subscription}} props */
function Card({ project, one }) {
  const { state, word, says } = health(one);
  return html`<li class="card subscriptions-card">
    <div class="subscriptions-head">
      <${Badge} state=${state} word=${word} />
      <a class="breaks" href=${href(project, "subscriptions", one.id)}><strong>${shownTarget(one.target)}</strong></a>
      <span class="muted">${one.channel}${one.origin === "api" ? "" : `, of ${one.origin === "configuration" ? "the configuration" : "an environment"}`}</span>
      <${Recent} project=${project} id=${one.id} />
    </div>
    <${Wanted} one=${one} />
    ${says && html`<p class="breaks subscriptions-says" data-state=${state}>${says}</p>`}
  </li>`;
}

/** What it asks for. @param {{one: Subscription}} props */
export function Wanted({ one }) {
  return html`<ul class="subscriptions-wanted">
    ${wanted(one).map(
      ({ label, globs }) =>
        html`<li key=${label}><span class="muted">${label}</span>${globs && html` <code class="breaks">${globs}</code>`}</li>`,
    )}
  </ul>`;
}
