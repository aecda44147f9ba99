/** The deliveries of a subscription: what became of each, and sending them again. */

import { call, isAborted } from "../api/client.js";
import { listen } from "../api/live.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { ask, here } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Field } from "../parts/field.js";
import { useHeld } from "../parts/held.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { repeated } from "../parts/repeated.js";
import { steadyRows } from "../parts/steady.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { DELIVERY } from "./health.js";

/** @typedef {import("./shapes.js").Delivery} Delivery */

const PAGE = 50;
/** How often is looked while something is on its way: not every arrival is an event. */
const LOOKED = 2000;

/** @param {{project: string, id: string}} props */
export function Deliveries({ project, id }) {
  const { held, on } = useHeld();
  const rows = useSignal(/** @type {Delivery[] | null} */ (null));
  const more = useSignal(0);
  const next = useSignal("");
  const wrong = useSignal(/** @type {unknown} */ (null));
  const state = here.value.query.get("state") ?? "";
  const from = here.value.query.get("from") ?? "";
  const read = useRef((/** @type {boolean} */ _anew) => {});
  useEffect(() => {
    const given = new AbortController();
    rows.value = null;
    let anew = true;
    const fetched = repeated(async () => {
      if (given.signal.aborted) return;
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (state) query.set("state", state);
      if (from) query.set("marker", from);
      const path = `/subscriptions/${id}/deliveries?${query}`;
      try {
        const said = await call("GET", project, path, undefined, { signal: given.signal });
        const shown = steadyRows(rows.peek() ?? [], said.deliveries, held.peek() && !anew);
        anew = false;
        rows.value = shown.rows;
        more.value = shown.held;
        next.value = said.next ?? "";
        wrong.value = null;
      } catch (error) {
        // Of a subscription that is there no more, the page around says so.
        if (!isAborted(error) && asProblem(error).status !== 404) wrong.value = error;
      }
    });
    read.current = (now) => {
      anew ||= now;
      fetched();
    };
    fetched();
    const timer = setInterval(() => {
      if (!document.hidden && rows.peek()?.some((one) => one.state === "pending")) fetched();
    }, LOOKED);
    const stop = listen({ event: fetched, resync: fetched });
    return () => {
      given.abort();
      clearInterval(timer);
      stop();
    };
  }, [project, id, state, from]);
  return html`<section class="column" aria-labelledby="deliveries">
    <div class="page-head">
      <h2 id="deliveries">Deliveries</h2>
      <label class="row"><span class="muted">state</span>
        <select value=${state} onChange=${(/** @type {any} */ event) => ask({ state: event.target.value, from: "" })}>
          <option value="">any</option>
          ${Object.keys(DELIVERY).map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
        </select></label>
      ${may("write") && html`<div class="acts"><${Again} project=${project} id=${id} done=${() => read.current(true)} /></div>`}
    </div>
    <${ProblemBox} error=${wrong.value} />
    ${more.value > 0 && html`<div role="status"><button onClick=${() => read.current(true)}>Show ${more.value} newer</button></div>`}
    ${rows.value?.length === 0 && html`<p class="muted">${state ? `None is ${state}.` : "Nothing was sent yet."}</p>`}
    <ul class="subscriptions-deliveries" ...${on}>
      ${rows.value?.map((one) => html`<${Row} key=${one.id} project=${project} id=${id} one=${one} done=${() => read.current(false)} />`)}
    </ul>
    ${
      (from || next.value) &&
      html`<nav class="row" aria-label="Pages of deliveries">
        ${from && html`<button onClick=${() => ask({ from: "" })}>Newest</button>`}
        ${next.value && html`<button onClick=${() => ask({ from: next.value })}>Older</button>`}
      </nav>`
    }
  </section>`;
}

/** @param {{project: string, id: string, one: Delivery, done: () => void}} props */
function Row({ project, id, one, done }) {
  const wrong = useSignal(/** @type {unknown} */ (null));
  async function again() {
    try {
      await call("POST", project, `/subscriptions/${id}/redeliver`, { delivery: one.id });
      wrong.value = null;
      done();
    } catch (error) {
      wrong.value = error;
    }
  }
  const tried = one.attempts === 1 ? "1 attempt" : `${one.attempts} attempts`;
  return html`<li>
    <${Badge} state=${DELIVERY[one.state] ?? "waiting"} word=${one.state} />
    <span class="subscriptions-what">
      <code class="breaks">${one.type}</code>
      <span class="muted">${tried}${one.code ? `, answered ${one.code}` : ""}</span>
      ${one.state === "pending" && one.next_at && html`<span>next <${Ago} at=${one.next_at} /></span>`}
      ${one.state === "pending" && !one.next_at && html`<span class="muted">behind one before it</span>`}
      ${one.error && html`<span class="breaks subscriptions-error">${one.error}</span>`}
      ${one.answer && html`<details><summary>Its answer</summary><pre>${one.answer}</pre></details>`}
      <${ProblemBox} error=${wrong.value} />
    </span>
    <span class="muted"><${Ago} at=${one.settled_at ?? one.created_at} /></span>
    ${may("write") && one.state !== "pending" && html`<button onClick=${again} aria-label=${`Redeliver ${one.type} ${one.sequence}`}>Redeliver</button>`}
  </li>`;
}

/** Many of them again. @param {{project: string, id: string, done: () => void}} props */
function Again({ project, id, done }) {
  const wrong = useSignal(/** @type {unknown} */ (null));
  const open = useSignal(false);
  /** @param {object} body */
  async function send(body) {
    try {
      const said = await call("POST", project, `/subscriptions/${id}/redeliver`, body);
      const many = said.redelivered === 1 ? "1 delivery is" : `${said.redelivered} deliveries are`;
      notify(said.redelivered ? `${many} sent again.` : "There is nothing to send again.");
      wrong.value = null;
      open.value = false;
      done();
    } catch (error) {
      wrong.value = error;
    }
  }
  /** @param {SubmitEvent} event */
  function submit(event) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const since = new Date(String(form.get("since")));
    // What is no time is left to the server to refuse.
    send({
      since: Number.isNaN(since.valueOf()) ? String(form.get("since")) : since.toISOString(),
    });
  }
  return html`<button onClick=${() => send({ state: "dead" })}>Redeliver all dead</button>
    <button aria-expanded=${open.value ? "true" : "false"} onClick=${() => {
      open.value = !open.value;
    }}>All since…</button>
    ${
      open.value &&
      html`<form class="row" onSubmit=${submit}>
        <${Field} label="Everything missed since">
          ${(/** @type {object} */ needs) => html`<input type="datetime-local" name="since" required ...${needs} />`}
        <//>
        <button>Redeliver</button>
      </form>`
    }
    ${wrong.value && html`<${ProblemBox} error=${asProblem(wrong.value)} />`}`;
}
