/** One hook on a page of its own, whether it waits or was answered long ago. */

import { isAborted, Problem } from "../api/client.js";
import { href } from "../app/route.js";
import { Badge } from "../parts/badge.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { Body } from "./card.js";
import { hookOf, readHook } from "./waiting.js";
import { looksOf, pointInWords, subject } from "./words.js";

/** @param {{project: string, id: string}} props */
export function HookPage({ project, id }) {
  const wrong = useSignal(/** @type {unknown} */ (null));
  const asked = useSignal(0);
  useEffect(() => {
    readHook(project, id).then(
      () => {
        wrong.value = null;
      },
      (error) => {
        if (!isAborted(error)) wrong.value = error;
      },
    );
  }, [project, id, asked.value]);
  const hook = hookOf(id);
  const gone = wrong.value instanceof Problem && wrong.value.status === 404;
  return html`<nav aria-label="Where this is"><a href=${href(project, "inbox")}>Inbox</a></nav>
    ${
      hook
        ? html`<div class="page-head">
            <h1><code class="breaks">${subject(hook)}</code> ${pointInWords(hook.point)}</h1>
            <${Badge} state=${looksOf(hook)} word=${hook.dry ? "tried out" : hook.state} />
          </div>`
        : html`<h1>${gone ? "There is no such hook" : "A hook"}</h1>`
    }
    <${ProblemBox} error=${wrong.value} />
    ${
      wrong.value &&
      !gone &&
      html`<div><button onClick=${() => {
        asked.value += 1;
      }}>Try again</button></div>`
    }
    ${!hook && !wrong.value && html`<p class="muted">Reading it …</p>`}
    ${hook && html`<div class="card"><${Body} project=${project} hook=${hook} level=${2} page=${true} /></div>`}`;
}
