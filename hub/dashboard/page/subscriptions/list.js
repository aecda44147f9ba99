/** The list of subscriptions with their health. */

import { call } from "../api/client.js";
import { listen } from "../api/live.js";
import { may } from "../api/session.js";
import { ask, here, href } from "../app/route.js";
import { Badge } from "../parts/badge.js";
import { useFetched } from "../parts/fetched.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { displayTarget, filterTexts } from "./filters.js";
import { health } from "./health.js";
import { Recent } from "./recent.js";

/** @typedef {import("./types.js").Subscription} Subscription */

/** Subscriptions per page; the recent deliveries of each are fetched as well. */
const PAGE = 25;
/** Event types after which the list may have changed. */
const TOLD = /^headgate\.(subscription\.|delivery\.dead|delivery\.delivered)/;

/** @param {{project: string}} props */
export function SubscriptionList({ project }) {
  const from = here.value.query.get("from") ?? "";
  const { found, wrong } = useFetched(
    async () => {
      const marker = from ? `&marker=${encodeURIComponent(from)}` : "";
      const response = await call("GET", project, `/subscriptions?limit=${PAGE}${marker}`);
      return /** @type {{subscriptions: Subscription[], next: string | null}} */ (response);
    },
    [project, from],
    (again) => listen({ event: (event) => TOLD.test(event.type) && again(), resync: again }),
  );
  const page = found.value;
  return html`<div class="page-head">
      <h1>Subscriptions</h1>
      ${may("write") && html`<div class="acts"><a class="button first" href=${href(project, "subscriptions", "new")}>New subscription</a></div>`}
    </div>
    <${ProblemBox} error=${wrong.value} />
    ${page && page.subscriptions.length === 0 && html`<${None} />`}
    <ul class="subscriptions-list">
      ${page?.subscriptions.map((one) => html`<${Card} key=${one.id} project=${project} one=${one} />`)}
    </ul>
    ${
      (from || page?.next) &&
      html`<nav class="row" aria-label="Subscription list pages">
        ${from && html`<button onClick=${() => ask({ from: "" })}>First page</button>`}
        ${page?.next && html`<button onClick=${() => ask({ from: String(page.next) })}>Next page</button>`}
      </nav>`
    }`;
}

function None() {
  return html`<p class="card">
    No subscriptions yet. A subscription sends events to a webhook or a message broker. Create one here, or
    run <code>headgate subscription create URL</code>
  </p>`;
}

/** @param {{project: string, one: Subscription}} props */
function Card({ project, one }) {
  const { state, word, text } = health(one);
  return html`<li class="card subscriptions-card">
    <div class="subscriptions-head">
      <${Badge} state=${state} word=${word} />
      <a class="breaks" href=${href(project, "subscriptions", one.id)}><strong>${displayTarget(one.target)}</strong></a>
      <span class="muted">${one.channel}${one.origin === "api" ? "" : `, from ${one.origin === "configuration" ? "the configuration" : "an environment"}`}</span>
      <${Recent} project=${project} id=${one.id} />
    </div>
    <${FilterList} one=${one} />
    ${text && html`<p class="breaks subscriptions-says" data-state=${state}>${text}</p>`}
  </li>`;
}

/** The filters of a subscription. @param {{one: Subscription}} props */
export function FilterList({ one }) {
  return html`<ul class="subscriptions-wanted">
    ${filterTexts(one).map(
      ({ label, globs }) =>
        html`<li key=${label}><span class="muted">${label}</span>${globs && html` <code class="breaks">${globs}</code>`}</li>`,
    )}
  </ul>`;
}
