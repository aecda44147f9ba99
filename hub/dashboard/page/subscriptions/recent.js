/** The recent deliveries of a subscription as a row of icons. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { coalesced } from "../parts/coalesced.js";
import { Icon } from "../parts/icon.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { DELIVERY } from "./health.js";

/** @typedef {import("./types.js").Delivery} Delivery */

const MANY = 12;
/**
 * Polling interval in milliseconds while deliveries are pending: failed attempts cause no event.
 */
const LOOKED = 5000;

/** Icons, newest last. @param {{project: string, id: string}} props */
export function Recent({ project, id }) {
  const found = useSignal(/** @type {Delivery[] | null} */ (null));
  useEffect(() => {
    const controller = new AbortController();
    const read = coalesced(async () => {
      if (controller.signal.aborted) return;
      try {
        const path = `/subscriptions/${id}/deliveries?limit=${MANY}`;
        const response = await call("GET", project, path, undefined, { signal: controller.signal });
        found.value = response.deliveries;
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
      controller.abort();
      clearInterval(timer);
      stop();
    };
  }, [project, id]);
  if (!found.value) return null;
  if (found.value.length === 0) return html`<span class="muted">no deliveries yet</span>`;
  const tried = found.value.filter(again).length;
  const words = inWords(found.value);
  return html`${tried > 0 && html`<span class="subscriptions-tried">${tried} retrying</span>`}
    <span class="subscriptions-recent" role="img" aria-label=${words} title=${words}>
      ${[...found.value].reverse().map(
        (one) => html`<span key=${one.id} data-state=${DELIVERY[one.state]}>
          <${Icon} name=${DELIVERY[one.state] ?? ""} />
        </span>`,
      )}
    </span>`;
}

/** Whether it is waiting for a retry. @param {Delivery} one */
function again(one) {
  return one.state === "pending" && one.attempts > 0;
}

/** @param {readonly Delivery[]} all */
function inWords(all) {
  const many = Object.keys(DELIVERY)
    .map((state) => [all.filter((one) => one.state === state).length, state])
    .filter(([count]) => count)
    .map(([count, state]) => `${count} ${state}`);
  return `last ${all.length}: ${many.join(", ")}`;
}
