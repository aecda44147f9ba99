/** What happened to one resource, newest first. */

import { Problem } from "../api/client.js";
import { Ago } from "../parts/ago.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { repeated } from "./repeated.js";

/** @typedef {import("./state.js").Looking} Looking */
/** @typedef {import("./state.js").Subject} Subject */
/** @typedef {{id: string, event_time: string, resource_status: string, resource_status_reason: string}} Event */

const AT_MOST = 50;

/** @param {{looking: Looking, subject: Subject}} props */
export function Happened({ looking, subject }) {
  const found = useSignal(/** @type {Event[]} */ ([]));
  const wrong = useSignal(/** @type {unknown} */ (null));
  const { watched } = looking;
  useEffect(() => {
    let ended = false;
    const reread = repeated(async () => {
      if (ended) return;
      try {
        const said = await watched.of(
          subject,
          `/events?limit=${AT_MOST}&sort_keys=event_time&sort_dir=desc`,
        );
        if (!ended) found.value = said.events;
        wrong.value = null;
      } catch (error) {
        // Of what nothing happened to yet, there is none.
        if (!ended && !(error instanceof Problem && error.status === 404)) wrong.value = error;
      }
    });
    const stop = watched.events.subscribe((events) => {
      const last = events.at(-1);
      if (!last || last.subject === subject.path) reread();
    });
    return () => {
      ended = true;
      stop();
    };
  }, [subject.key]);
  if (found.value.length === 0 && !wrong.value) return null;
  return html`<details class="stack-values" open>
    <summary><h3>Events</h3></summary>
    <${ProblemBox} error=${wrong.value} />
    <ol class="stack-list stack-happened">
      ${found.value.map(
        (one) => html`<li key=${one.id}>
          <span>${one.resource_status}</span>
          <span class="muted breaks">${one.resource_status_reason}</span>
          <${Ago} at=${one.event_time} />
        </li>`,
      )}
    </ol>
  </details>`;
}
