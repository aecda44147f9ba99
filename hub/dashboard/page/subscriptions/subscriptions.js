/** Who is told of what: the list, one of them, or a new one. */

import { may } from "../api/session.js";
import { html } from "../vendor/preact.js";
import { NewSubscription } from "./form.js";
import { SubscriptionList } from "./list.js";
import { OneSubscription } from "./one.js";

/** @param {{project: string, rest: string[]}} props */
export function Subscriptions({ project, rest }) {
  const [id] = rest;
  if (!id) return html`<${SubscriptionList} project=${project} />`;
  if (id === "new" && may("write")) return html`<${NewSubscription} project=${project} />`;
  return html`<${OneSubscription} project=${project} id=${id} />`;
}
