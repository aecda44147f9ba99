/** The page of one hook, waiting or ended. */

import { isAborted, Problem } from "../api/client.js";
import { href } from "../app/route.js";
import { Badge } from "../parts/badge.js";
import { Breakable } from "../parts/breakable.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { HookBody } from "./card.js";
import { badgeStateOf, pointInWords, subject } from "./hook_text.js";
import { cachedHook, readHook } from "./waiting.js";

/** @param {{project: string, id: string}} props */
export function HookPage({ project, id }) {
  const failure = useSignal(/** @type {unknown} */ (null));
  const attempt = useSignal(0);
  useEffect(() => {
    readHook(project, id).then(
      () => {
        failure.value = null;
      },
      (error) => {
        if (!isAborted(error)) failure.value = error;
      },
    );
  }, [project, id, attempt.value]);
  const hook = cachedHook(id);
  const notFound = failure.value instanceof Problem && failure.value.status === 404;
  return html`<nav aria-label="Breadcrumb"><a href=${href(project, "inbox")}>Inbox</a></nav>
    ${
      hook
        ? html`<div class="page-head">
            <h1><code class="breaks"><${Breakable} text=${subject(hook)} /></code> ${pointInWords(hook.point)}</h1>
            <${Badge} state=${badgeStateOf(hook)} word=${hook.dry ? "dry run" : hook.state} />
          </div>`
        : html`<h1>${notFound ? "Hook not found" : "Hook"}</h1>`
    }
    <${ProblemBox} error=${failure.value} />
    ${
      failure.value &&
      !notFound &&
      html`<div><button onClick=${() => {
        attempt.value += 1;
      }}>Try again</button></div>`
    }
    ${!hook && !failure.value && html`<p class="muted">Loading the hook…</p>`}
    ${hook && html`<div class="card"><${HookBody} project=${project} hook=${hook} level=${2} page=${true} /></div>`}`;
}
