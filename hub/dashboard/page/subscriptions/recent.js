/** The latest deliveries of a subscription, each a small mark: how it fares at a glance. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { Icon } from "../parts/icon.js";
import { repeated } from "../parts/repeated.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { DELIVERY } from "./health.js";

/** @typedef {import("./shapes.js").Delivery} Delivery */

const MANY = 12;
/** Failed attempts are no events: while something is on its way is looked so often, in milliseconds. */
const LOOKED = 5000;

/** Marks, newest last. @param {{project: string, id: string}} props */
export function Recent({ project, id }) {
  const found = useSignal(/** @type {Delivery[] | null} */ (null));
  useEffect(() => {
    const given = new AbortController();
    const read = repeated(async () => {
      if (given.signal.aborted) return;
      try {
        const path = `/subscriptions/${id}/deliveries?limit=${MANY}`;
        const said = await call("GET", project, path, undefined, { signal: given.signal });
        found.value = said.deliveries;
      } catch (error) {
        if (!isAborted(error)) found.value = null;
      }
    });
    read();
    const stop = listen({
      event: (event) => {
        if (event.data?.subscription === id || event.data?.subscription?.id === id) read();
      },
      resync: read,
    });
    const timer = setInterval(() => {
      if (!document.hidden && found.peek()?.some((one) => one.state === "pending")) read();
    }, LOOKED);
    return () => {
      given.abort();
      clearInterval(timer);
      stop();
    };
  }, [project, id]);
  if (!found.value) return null;
  if (found.value.length === 0) return html`<span class="muted">nothing was sent yet</span>`;
  const tried = found.value.filter(again).length;
  const words = inWords(found.value);
  return html`${tried > 0 && html`<span class="subscriptions-tried">${tried} tried again</span>`}
    <span class="subscriptions-recent" role="img" aria-label=${words} title=${words}>
      ${[...found.value].reverse().map(
        (one) => html`<span key=${one.id} data-state=${DELIVERY[one.state]}>
          <${Icon} name=${DELIVERY[one.state] ?? ""} />
        </span>`,
      )}
    </span>`;
}

/** Whether it failed, and is tried again. @param {Delivery} one */
function again(one) {
  return one.state === "pending" && one.attempts > 0;
}

/** @param {readonly Delivery[]} all */
function inWords(all) {
  const many = Object.keys(DELIVERY)
    .map((state) => [all.filter((one) => one.state === state).length, state])
    .filter(([count]) => count)
    .map(([count, state]) => `${count} ${state}`);
  return `the last ${all.length}: ${many.join(", ")}`;
}
