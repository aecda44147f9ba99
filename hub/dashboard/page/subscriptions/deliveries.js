/** The deliveries of a subscription, and resending them. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { currentPlace, setQuery } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { coalesce } from "../parts/fetch.js";
import { Field } from "../parts/field.js";
import { useInteraction } from "../parts/interaction.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { stableRows } from "../parts/stable_rows.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { DELIVERY } from "./health.js";

/** @typedef {import("./types.js").Delivery} Delivery */

const PAGE = 50;
/**
 * Polling interval in milliseconds while deliveries are pending: not every attempt causes an event.
 */
const POLL_INTERVAL = 2000;

/** @param {{project: string, id: string}} props */
export function Deliveries({ project, id }) {
  const { held, on } = useInteraction();
  const rows = useSignal(/** @type {Delivery[] | null} */ (null));
  const more = useSignal(0);
  const next = useSignal("");
  const failure = useSignal(/** @type {unknown} */ (null));
  const state = currentPlace.value.query.get("state") ?? "";
  const from = currentPlace.value.query.get("from") ?? "";
  const read = useRef((/** @type {boolean} */ _anew) => {});
  useEffect(() => {
    const controller = new AbortController();
    rows.value = null;
    let refresh = true;
    const fetched = coalesce(async () => {
      if (controller.signal.aborted) return;
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (state) query.set("state", state);
      if (from) query.set("marker", from);
      const path = `/subscriptions/${id}/deliveries?${query}`;
      try {
        const response = await call("GET", project, path, undefined, { signal: controller.signal });
        const shown = stableRows(rows.peek() ?? [], response.deliveries, held.peek() && !refresh);
        refresh = false;
        rows.value = shown.rows;
        more.value = shown.held;
        next.value = response.next ?? "";
        failure.value = null;
      } catch (error) {
        // The enclosing page shows that the subscription was deleted.
        if (!isAborted(error) && asProblem(error).status !== 404) failure.value = error;
      }
    });
    read.current = (now) => {
      refresh ||= now;
      fetched();
    };
    fetched();
    const timer = setInterval(() => {
      if (!document.hidden && rows.peek()?.some((row) => row.state === "pending")) fetched();
    }, POLL_INTERVAL);
    const stop = listen({ event: fetched, resync: fetched });
    return () => {
      controller.abort();
      clearInterval(timer);
      stop();
    };
  }, [project, id, state, from]);
  return html`<section class="column" aria-labelledby="deliveries">
    <div class="page-head">
      <h2 id="deliveries">Deliveries</h2>
      <label class="row"><span class="muted">State</span>
        <select value=${state} onChange=${(/** @type {any} */ event) => setQuery({ state: event.target.value, from: "" })}>
          <option value="">any</option>
          ${Object.keys(DELIVERY).map((key) => html`<option key=${key} value=${key}>${key}</option>`)}
        </select></label>
      ${may("write") && html`<div class="acts"><${ResendForm} project=${project} id=${id} done=${() => read.current(true)} /></div>`}
    </div>
    <${ProblemBox} error=${failure.value} />
    ${more.value > 0 && html`<div role="status"><button onClick=${() => read.current(true)}>Show ${more.value} newer</button></div>`}
    ${rows.value?.length === 0 && html`<p class="muted">${state ? `No ${state} deliveries.` : "No deliveries yet."}</p>`}
    <ul class="subscriptions-deliveries" ...${on}>
      ${rows.value?.map((row) => html`<${Row} key=${row.id} project=${project} id=${id} delivery=${row} done=${() => read.current(false)} />`)}
    </ul>
    ${
      (from || next.value) &&
      html`<nav class="row" aria-label="Delivery pages">
        ${from && html`<button onClick=${() => setQuery({ from: "" })}>Newest</button>`}
        ${next.value && html`<button onClick=${() => setQuery({ from: next.value })}>Older</button>`}
      </nav>`
    }
  </section>`;
}

/** @param {{project: string, id: string, delivery: Delivery, done: () => void}} props */
function Row({ project, id, delivery, done }) {
  const failure = useSignal(/** @type {unknown} */ (null));
  async function resend() {
    try {
      await call("POST", project, `/subscriptions/${id}/redeliver`, { delivery: delivery.id });
      failure.value = null;
      done();
    } catch (error) {
      failure.value = error;
    }
  }
  const tried = delivery.attempts === 1 ? "1 attempt" : `${delivery.attempts} attempts`;
  return html`<li>
    <${Badge} state=${DELIVERY[delivery.state] ?? "waiting"} word=${delivery.state} />
    <span class="subscriptions-what">
      <code class="breaks">${delivery.type}</code>
      <span class="muted">${tried}${delivery.code ? `, response ${delivery.code}` : ""}</span>
      ${delivery.state === "pending" && delivery.next_at && html`<span>next attempt <${Ago} at=${delivery.next_at} /></span>`}
      ${delivery.state === "pending" && !delivery.next_at && html`<span class="muted">queued behind an earlier delivery</span>`}
      ${delivery.error && html`<span class="breaks subscriptions-error">${delivery.error}</span>`}
      ${delivery.response && html`<details><summary>Response</summary><pre tabindex="0">${delivery.response}</pre></details>`}
      <${ProblemBox} error=${failure.value} />
    </span>
    <span class="muted"><${Ago} at=${delivery.ended_at ?? delivery.created_at} /></span>
    ${may("write") && delivery.state !== "pending" && html`<button onClick=${resend} aria-label=${`Resend ${delivery.type} ${delivery.sequence}`}>Resend</button>`}
  </li>`;
}

/** Resends several deliveries. @param {{project: string, id: string, done: () => void}} props */
function ResendForm({ project, id, done }) {
  const failure = useSignal(/** @type {unknown} */ (null));
  const open = useSignal(false);
  /** @param {object} body */
  async function send(body) {
    try {
      const response = await call("POST", project, `/subscriptions/${id}/redeliver`, body);
      const many = response.redelivered === 1 ? "1 delivery" : `${response.redelivered} deliveries`;
      notify(response.redelivered ? `Resending ${many}.` : "No deliveries to resend.");
      failure.value = null;
      open.value = false;
      done();
    } catch (error) {
      failure.value = error;
    }
  }
  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const since = new Date(String(form.get("since")));
    // The server reports an invalid time.
    send({
      since: Number.isNaN(since.valueOf()) ? String(form.get("since")) : since.toISOString(),
    });
  }
  return html`<button onClick=${() => send({ state: "dead" })}>Resend all dead</button>
    <button aria-expanded=${open.value ? "true" : "false"} onClick=${() => {
      open.value = !open.value;
    }}>Resend since…</button>
    ${
      open.value &&
      html`<form class="row" onSubmit=${submit}>
        <${Field} label="Resend all events since">
          ${(/** @type {object} */ needs) => html`<input type="datetime-local" name="since" required ...${needs} />`}
        <//>
        <button>Resend</button>
      </form>`
    }
    ${failure.value && html`<${ProblemBox} error=${asProblem(failure.value)} />`}`;
}
