/** The Subscriptions page: the list, one subscription, or the form for a new one. */

import { may } from "../api/session.js";
import { html } from "../vendor/preact.js";
import { SubscriptionDetails } from "./details.js";
import { NewSubscription } from "./form.js";
import { SubscriptionList } from "./list.js";

/** @param {{project: string, rest: string[]}} props */
export function Subscriptions({ project, rest }) {
  const [id] = rest;
  if (!id) return html`<${SubscriptionList} project=${project} />`;
  if (id === "new" && may("write")) return html`<${NewSubscription} project=${project} />`;
  return html`<${SubscriptionDetails} project=${project} id=${id} />`;
}
