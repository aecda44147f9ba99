/** One subscription: health, filters, test event and deliveries. */

import { call } from "../api/client.js";
import { listen } from "../api/live.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { href, navigate } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { SecretDialog } from "../parts/copy.js";
import { Dialog } from "../parts/dialog.js";
import { coalesce } from "../parts/fetch.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { Deliveries } from "./deliveries.js";
import { displayTarget } from "./filters.js";
import { ChangeForm } from "./form.js";
import { health, origin } from "./health.js";
import { FilterList } from "./list.js";

/** @typedef {import("./types.js").Subscription} Subscription */
/** @typedef {{delivered: boolean, code: number | null, response?: string, reason?: string}} Tried */

/** @param {{project: string, id: string}} props */
export function SubscriptionDetails({ project, id }) {
  const data = useSignal(/** @type {Subscription | null} */ (null));
  const failure = useSignal(/** @type {unknown} */ (null));
  const deletedBy = useSignal("");
  useEffect(() => {
    let ended = false;
    const read = coalesce(async () => {
      if (ended) return;
      try {
        const response = await call("GET", project, `/subscriptions/${encodeURIComponent(id)}`);
        if (ended) return;
        data.value = response;
        failure.value = null;
      } catch (error) {
        if (ended || deletedBy.peek()) return;
        // The deletion event, which names the user, may arrive later.
        if (data.peek() && asProblem(error).status === 404) deletedBy.value = "another user";
        else failure.value = error;
      }
    });
    read();
    const stop = listen({
      event: (event) => {
        if ((event.data?.subscription?.id ?? event.data?.subscription) !== id) return;
        if (event.type === "headgate.subscription.deleted")
          deletedBy.value = event.data.by || "another user";
        else read();
      },
      resync: read,
    });
    return () => {
      ended = true;
      stop();
    };
  }, [project, id]);
  const subscription = data.value;
  return html`<p><a href=${href(project, "subscriptions")}>All subscriptions</a></p>
    <h1 class="breaks">${subscription ? displayTarget(subscription.target) : "Subscription"}</h1>
    <${ProblemBox} error=${failure.value} />
    ${deletedBy.value && html`<p class="problem" role="alert">This subscription and its deliveries were deleted by ${deletedBy.value}.</p>`}
    ${
      subscription &&
      html`<${Facts} project=${project} subscription=${subscription} />
        ${may("write") && !deletedBy.value && html`<${Acts} project=${project} subscription=${subscription} show=${(/** @type {Subscription} */ now) => (data.value = now)} />`}
        ${!deletedBy.value && html`<${Deliveries} project=${project} id=${id} />`}`
    }`;
}

/** @param {{project: string, subscription: Subscription}} props */
function Facts({ subscription }) {
  const { state, word, text } = health(subscription);
  return html`<div class="card column">
    <div class="subscriptions-head">
      <${Badge} state=${state} word=${word} />
      <span class="muted">${subscription.channel}, created <${Ago} at=${subscription.created_at} /></span>
      <code class="muted breaks">${subscription.id}</code>
    </div>
    ${text && html`<p class="breaks subscriptions-reason" data-state=${state}>${text}</p>`}
    <${FilterList} subscription=${subscription} />
    ${subscription.origin !== "api" && html`<p>${origin(subscription)}</p>`}
  </div>`;
}

/** @param {{project: string, subscription: Subscription, show: (now: Subscription) => void}} props */
function Acts({ project, subscription, show }) {
  const activity = useSignal("");
  const failure = useSignal(/** @type {unknown} */ (null));
  const testResult = useSignal(/** @type {Tried | null} */ (null));
  const secret = useSignal("");
  const path = `/subscriptions/${subscription.id}`;
  /** @param {string} what @param {() => Promise<void>} run */
  const action = (what, run) => async () => {
    activity.value = what;
    failure.value = null;
    try {
      await run();
    } catch (error) {
      failure.value = error;
    }
    if (activity.value === what) activity.value = "";
  };
  const busy = ["test", "turn", "rotate", "delete"].includes(activity.value);
  const test = action("test", async () => {
    testResult.value = null;
    testResult.value = await call("POST", project, `${path}/test`);
  });
  const other = subscription.state === "enabled" ? "disabled" : "enabled";
  const turn = action("turn", async () =>
    show(await call("PATCH", project, path, { state: other })),
  );
  const rotate = action("rotate", async () => {
    secret.value = (await call("POST", project, `${path}/rotate`)).secret;
  });
  const remove = action("delete", async () => {
    await call("DELETE", project, path);
    notify(`Deleted the subscription to ${displayTarget(subscription.target)}.`);
    navigate(href(project, "subscriptions"));
  });
  /** @param {string} what */
  const begin = (what) => () => {
    activity.value = what;
    failure.value = null;
  };
  const done = () => {
    activity.value = "";
  };
  const editable = subscription.origin === "api";
  return html`<div class="row">
      <button disabled=${busy} onClick=${test}>Send test event</button>
      ${editable && html`<button onClick=${begin("change")} aria-expanded=${activity.value === "change" ? "true" : "false"}>Edit…</button>`}
      ${editable && html`<button class=${other === "enabled" ? "first" : ""} disabled=${busy} onClick=${turn}>${other === "enabled" ? "Enable" : "Disable"}</button>`}
      <button onClick=${begin("ask-rotate")}>Rotate secret…</button>
      ${editable && html`<button class="danger" onClick=${begin("ask-delete")}>Delete…</button>`}
    </div>
    <${ProblemBox} error=${failure.value} />
    <${Outcome} tried=${testResult.value} busy=${activity.value === "test"} />
    ${
      activity.value === "change" &&
      html`<${ChangeForm} project=${project} subscription=${subscription} done=${(
        /** @type {Subscription | undefined} */ now,
      ) => {
        done();
        if (now) show(now);
      }} />`
    }
    ${
      activity.value === "ask-rotate" &&
      html`<${Dialog} title="Rotate the secret?" onClose=${done}>
        <p>For one day, deliveries are signed with both the old and the new secret, so you have time to configure the receiver.</p>
        <div class="acts"><button onClick=${done}>Cancel</button><button class="first" onClick=${rotate}>Rotate secret</button></div>
      <//>`
    }
    ${
      activity.value === "ask-delete" &&
      html`<${Dialog} title="Delete the subscription?" onClose=${done}>
        <p class="breaks"><strong>${displayTarget(subscription.target)}</strong> receives no more events. Its deliveries
          are deleted, including pending ones.</p>
        <div class="acts"><button onClick=${done}>Cancel</button><button class="danger" onClick=${remove}>Delete</button></div>
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
        ${tried.response && html`<pre tabindex="0">${tried.response}</pre>`}
      </div>`
    }
  </div>`;
}
