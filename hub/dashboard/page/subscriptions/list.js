/** The list of subscriptions with their health. */

import { call } from "../api/client.js";
import { listen } from "../api/live.js";
import { may } from "../api/session.js";
import { currentPlace, href, setQuery } from "../app/route.js";
import { Badge } from "../parts/badge.js";
import { EmptyState } from "../parts/empty_state.js";
import { useFetch } from "../parts/fetch.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { displayTarget, filterTexts } from "./filters.js";
import { health } from "./health.js";
import { Recent } from "./recent.js";

/** @typedef {import("./types.js").Subscription} Subscription */

/** Subscriptions per page; the recent deliveries of each are fetched as well. */
const PAGE = 25;
/** Event types after which the list may have changed. */
const RELEVANT_EVENTS = /^headgate\.(subscription\.|delivery\.dead|delivery\.delivered)/;

/** @param {{project: string}} props */
export function SubscriptionList({ project }) {
  const from = currentPlace.value.query.get("from") ?? "";
  const { data, failure } = useFetch(
    async () => {
      const marker = from ? `&marker=${encodeURIComponent(from)}` : "";
      const response = await call("GET", project, `/subscriptions?limit=${PAGE}${marker}`);
      return /** @type {{subscriptions: Subscription[], next: string | null}} */ (response);
    },
    [project, from],
    (again) =>
      listen({ event: (event) => RELEVANT_EVENTS.test(event.type) && again(), resync: again }),
  );
  const page = data.value;
  return html`<div class="page-head">
      <h1>Subscriptions</h1>
      ${may("write") && html`<div class="acts"><a class="button first" href=${href(project, "subscriptions", "new")}>New subscription</a></div>`}
    </div>
    <${ProblemBox} error=${failure.value} />
    ${page && page.subscriptions.length === 0 && html`<${EmptyList} project=${project} />`}
    <ul class="subscriptions-list">
      ${page?.subscriptions.map((subscription) => html`<${Card} key=${subscription.id} project=${project} subscription=${subscription} />`)}
    </ul>
    ${
      (from || page?.next) &&
      html`<nav class="row" aria-label="Subscription list pages">
        ${from && html`<button onClick=${() => setQuery({ from: "" })}>First page</button>`}
        ${page?.next && html`<button onClick=${() => setQuery({ from: String(page.next) })}>Next page</button>`}
      </nav>`
    }`;
}

/** @param {{project: string}} props */
function EmptyList({ project }) {
  return html`<${EmptyState} title="No subscriptions yet.">
    <p>
      A subscription sends events to a webhook or a message broker: for example, each waiting hook to its
      approvers' chat, or to a program that answers it.
    </p>
    ${may("write") && html`<p><a href=${href(project, "subscriptions", "new")}>Create a subscription</a>, or run <code>headgate subscription create URL</code>.</p>`}
  <//>`;
}

/** @param {{project: string, subscription: Subscription}} props */
function Card({ project, subscription }) {
  const { state, word, text } = health(subscription);
  return html`<li class="card subscriptions-card">
    <div class="subscriptions-head">
      <${Badge} state=${state} word=${word} />
      <a class="breaks" href=${href(project, "subscriptions", subscription.id)}><strong>${displayTarget(subscription.target)}</strong></a>
      <span class="muted">${subscription.channel}${subscription.origin === "api" ? "" : `, from ${subscription.origin === "configuration" ? "the configuration" : "an environment"}`}</span>
      <${Recent} project=${project} id=${subscription.id} />
    </div>
    <${FilterList} subscription=${subscription} />
    ${text && html`<p class="breaks subscriptions-reason" data-state=${state}>${text}</p>`}
  </li>`;
}

/** The filters of a subscription. @param {{subscription: Subscription}} props */
export function FilterList({ subscription }) {
  return html`<ul class="subscriptions-filter-list">
    ${filterTexts(subscription).map(
      ({ label, globs }) =>
        html`<li key=${label}><span class="muted">${label}</span>${globs && html` <code class="breaks">${globs}</code>`}</li>`,
    )}
  </ul>`;
}
