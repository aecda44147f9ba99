/** One subscription: health, filters, test event and deliveries. */

import { call } from "../api/client.js";
import { listen } from "../api/live.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { go, href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { coalesced } from "../parts/coalesced.js";
import { SecretDialog } from "../parts/copy.js";
import { Dialog } from "../parts/dialog.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { Deliveries } from "./deliveries.js";
import { displayTarget } from "./filters.js";
import { ChangeForm } from "./form.js";
import { health, origin } from "./health.js";
import { FilterList } from "./list.js";

/** @typedef {import("./types.js").Subscription} Subscription */
/** @typedef {{delivered: boolean, code: number | null, answer?: string, reason?: string}} Tried */

/** @param {{project: string, id: string}} props */
export function SubscriptionDetails({ project, id }) {
  const found = useSignal(/** @type {Subscription | null} */ (null));
  const wrong = useSignal(/** @type {unknown} */ (null));
  const gone = useSignal("");
  useEffect(() => {
    let ended = false;
    const read = coalesced(async () => {
      if (ended) return;
      try {
        const response = await call("GET", project, `/subscriptions/${encodeURIComponent(id)}`);
        if (ended) return;
        found.value = response;
        wrong.value = null;
      } catch (error) {
        if (ended || gone.peek()) return;
        // The deletion event, which names the user, may arrive later.
        if (found.peek() && asProblem(error).status === 404) gone.value = "another user";
        else wrong.value = error;
      }
    });
    read();
    const stop = listen({
      event: (event) => {
        if ((event.data?.subscription?.id ?? event.data?.subscription) !== id) return;
        if (event.type === "headgate.subscription.deleted")
          gone.value = event.data.by || "another user";
        else read();
      },
      resync: read,
    });
    return () => {
      ended = true;
      stop();
    };
  }, [project, id]);
  const one = found.value;
  return html`<p><a href=${href(project, "subscriptions")}>All subscriptions</a></p>
    <h1 class="breaks">${one ? displayTarget(one.target) : "Subscription"}</h1>
    <${ProblemBox} error=${wrong.value} />
    ${gone.value && html`<p class="problem" role="alert">This subscription and its deliveries were deleted by ${gone.value}.</p>`}
    ${
      one &&
      html`<${Facts} project=${project} one=${one} />
        ${may("write") && !gone.value && html`<${Acts} project=${project} one=${one} show=${(/** @type {Subscription} */ now) => (found.value = now)} />`}
        ${!gone.value && html`<${Deliveries} project=${project} id=${id} />`}`
    }`;
}

/** @param {{project: string, one: Subscription}} props */
function Facts({ one }) {
  const { state, word, text } = health(one);
  return html`<div class="card column">
    <div class="subscriptions-head">
      <${Badge} state=${state} word=${word} />
      <span class="muted">${one.channel}, created <${Ago} at=${one.created_at} /></span>
      <code class="muted breaks">${one.id}</code>
    </div>
    ${text && html`<p class="breaks subscriptions-says" data-state=${state}>${text}</p>`}
    <${FilterList} one=${one} />
    ${one.origin !== "api" && html`<p>${origin(one)}</p>`}
  </div>`;
}

/** @param {{project: string, one: Subscription, show: (now: Subscription) => void}} props */
function Acts({ project, one, show }) {
  const doing = useSignal("");
  const wrong = useSignal(/** @type {unknown} */ (null));
  const tried = useSignal(/** @type {Tried | null} */ (null));
  const secret = useSignal("");
  const path = `/subscriptions/${one.id}`;
  /** @param {string} what @param {() => Promise<void>} does */
  const doer = (what, does) => async () => {
    doing.value = what;
    wrong.value = null;
    try {
      await does();
    } catch (error) {
      wrong.value = error;
    }
    if (doing.value === what) doing.value = "";
  };
  const busy = ["test", "turn", "rotate", "delete"].includes(doing.value);
  const test = doer("test", async () => {
    tried.value = null;
    tried.value = await call("POST", project, `${path}/test`);
  });
  const other = one.state === "enabled" ? "disabled" : "enabled";
  const turn = doer("turn", async () => show(await call("PATCH", project, path, { state: other })));
  const rotate = doer("rotate", async () => {
    secret.value = (await call("POST", project, `${path}/rotate`)).secret;
  });
  const forget = doer("delete", async () => {
    await call("DELETE", project, path);
    notify(`Deleted the subscription to ${displayTarget(one.target)}.`);
    go(href(project, "subscriptions"));
  });
  /** @param {string} what */
  const begin = (what) => () => {
    doing.value = what;
    wrong.value = null;
  };
  const done = () => {
    doing.value = "";
  };
  const mine = one.origin === "api";
  return html`<div class="row">
      <button disabled=${busy} onClick=${test}>Send test event</button>
      ${mine && html`<button onClick=${begin("change")} aria-expanded=${doing.value === "change" ? "true" : "false"}>Edit…</button>`}
      ${mine && html`<button class=${other === "enabled" ? "first" : ""} disabled=${busy} onClick=${turn}>${other === "enabled" ? "Enable" : "Disable"}</button>`}
      <button onClick=${begin("ask-rotate")}>Rotate secret…</button>
      ${mine && html`<button class="danger" onClick=${begin("ask-delete")}>Delete…</button>`}
    </div>
    <${ProblemBox} error=${wrong.value} />
    <${Outcome} tried=${tried.value} busy=${doing.value === "test"} />
    ${
      doing.value === "change" &&
      html`<${ChangeForm} project=${project} one=${one} done=${(
        /** @type {Subscription | undefined} */ now,
      ) => {
        done();
        if (now) show(now);
      }} />`
    }
    ${
      doing.value === "ask-rotate" &&
      html`<${Dialog} title="Rotate the secret?" onClose=${done}>
        <p>For one day, deliveries are signed with both the old and the new secret, so you have time to configure the receiver.</p>
        <div class="acts"><button onClick=${done}>Cancel</button><button class="first" onClick=${rotate}>Rotate secret</button></div>
      <//>`
    }
    ${
      doing.value === "ask-delete" &&
      html`<${Dialog} title="Delete the subscription?" onClose=${done}>
        <p class="breaks"><strong>${displayTarget(one.target)}</strong> receives no more events. Its deliveries
          are deleted, including pending ones.</p>
        <div class="acts"><button onClick=${done}>Cancel</button><button class="danger" onClick=${forget}>Delete</button></div>
      <//>`
    }
    ${
      secret.value &&
      html`<${SecretDialog} title="New secret" what="the secret" text=${secret.value} onClose=${() => {
        secret.value = "";
      }}>New deliveries are signed with this secret.<//>`
    }`;
}

/** The result of a test event. @param {{tried: Tried | null, busy: boolean}} props */
function Outcome({ tried, busy }) {
  return html`<div role="status">
    ${busy && html`<span class="muted">Sending a test event…</span>`}
    ${
      tried &&
      html`<div class="card column">
        <div class="row">
          <${Badge} state=${tried.delivered ? "done" : "failed"} word=${tried.delivered ? "Test event delivered" : "Test event not delivered"} />
          ${tried.code && html`<span>response ${tried.code}</span>`}
        </div>
        ${tried.reason && html`<p class="breaks">${tried.reason}</p>`}
        ${tried.answer && html`<pre>${tried.answer}</pre>`}
      </div>`
    }
  </div>`;
}
