/** The recent deliveries of a subscription as a row of icons. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { coalesce } from "../parts/fetch.js";
import { Icon } from "../parts/icon.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { DELIVERY } from "./health.js";

/** @typedef {import("./types.js").Delivery} Delivery */

const MANY = 12;
/**
 * Polling interval in milliseconds while deliveries are pending: failed attempts cause no event.
 */
const POLL_INTERVAL = 5000;

/** Icons, newest last. @param {{project: string, id: string}} props */
export function Recent({ project, id }) {
  const data = useSignal(/** @type {Delivery[] | null} */ (null));
  useEffect(() => {
    const controller = new AbortController();
    const read = coalesce(async () => {
      if (controller.signal.aborted) return;
      try {
        const path = `/subscriptions/${id}/deliveries?limit=${MANY}`;
        const response = await call("GET", project, path, undefined, { signal: controller.signal });
        data.value = response.deliveries;
      } catch (error) {
        if (!isAborted(error)) data.value = null;
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
      if (!document.hidden && data.peek()?.some((item) => item.state === "pending")) read();
    }, POLL_INTERVAL);
    return () => {
      controller.abort();
      clearInterval(timer);
      stop();
    };
  }, [project, id]);
  if (!data.value) return null;
  if (data.value.length === 0) return html`<span class="muted">no deliveries yet</span>`;
  const tried = data.value.filter(isRetrying).length;
  const words = summaryText(data.value);
  return html`${tried > 0 && html`<span class="subscriptions-retrying">${tried} retrying</span>`}
    <span class="subscriptions-recent" role="img" aria-label=${words} title=${words}>
      ${[...data.value].reverse().map(
        (item) => html`<span key=${item.id} data-state=${DELIVERY[item.state]}>
          <${Icon} name=${DELIVERY[item.state] ?? ""} />
        </span>`,
      )}
    </span>`;
}

/** Whether it is waiting for a retry. @param {Delivery} delivery */
function isRetrying(delivery) {
  return delivery.state === "pending" && delivery.attempts > 0;
}

/** @param {readonly Delivery[]} all */
function summaryText(all) {
  const many = Object.keys(DELIVERY)
    .map((state) => [all.filter((item) => item.state === state).length, state])
    .filter(([count]) => count)
    .map(([count, state]) => `${count} ${state}`);
  return `last ${all.length}: ${many.join(", ")}`;
}
