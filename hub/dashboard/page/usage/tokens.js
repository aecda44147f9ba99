/** Tokens and passwords of the project, for admins. */

import { call } from "../api/client.js";
import { mode, session } from "../api/session.js";
import { Ago } from "../parts/ago.js";
import { Badge } from "../parts/badge.js";
import { Dialog } from "../parts/dialog.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { NewToken } from "./new_token.js";

/** @typedef {import("./types.js").Token} Token */

/**
 * The state of a token and its text.
 * @param {Token} one @param {number} at milliseconds since 1970
 */
export function tokenState({ revoked_at, expires_at }, at) {
  if (revoked_at) return { state: "failed", word: "revoked" };
  if (expires_at && Date.parse(expires_at) <= at) return { state: "dropped", word: "expired" };
  return { state: "done", word: "active" };
}

/** @param {{project: string}} props */
export function Tokens({ project }) {
  const found = useSignal(/** @type {Token[] | null} */ (null));
  const wrong = useSignal(/** @type {unknown} */ (null));
  const gone = useSignal(false);
  const everywhere = useSignal(false);
  const making = useSignal(false);
  const revoking = useSignal(/** @type {Token | null} */ (null));
  async function read() {
    const query = new URLSearchParams();
    if (gone.value) query.set("gone", "true");
    if (everywhere.value) query.set("everywhere", "true");
    try {
      found.value = (await call("GET", project, `/tokens?${query}`)).tokens;
      wrong.value = null;
    } catch (error) {
      wrong.value = error;
    }
  }
  useEffect(() => {
    read();
  }, [project, gone.value, everywhere.value]);
  /** @param {Token} one */
  async function revoke(one) {
    const query = one.everywhere ? "?everywhere=true" : "";
    revoking.value = null;
    try {
      await call("DELETE", project, `/tokens/${one.id}${query}`);
    } catch (error) {
      wrong.value = error;
      return;
    }
    await read();
  }
  const all = session.value?.everywhere;
  return html`<section class="card column usage-whole" aria-labelledby="tokens">
    <div class="page-head">
      <h2 id="tokens">Tokens and passwords</h2>
      <div class="acts"><button onClick=${() => {
        making.value = true;
      }} disabled=${making.value}>Create…</button></div>
    </div>
    ${mode !== "tokens" && html`<p class="muted">Not accepted while the server's <code>[auth] mode</code> is <code>${mode}</code>.</p>`}
    <div class="row">
      <${Toggle} on=${gone} word="Include revoked and expired" />
      ${all && html`<${Toggle} on=${everywhere} word="Valid in every project" />`}
    </div>
    <${ProblemBox} error=${wrong.value} />
    ${
      making.value &&
      html`<${NewToken} project=${project} everywhere=${Boolean(all)} made=${read} done=${() => {
        making.value = false;
      }} />`
    }
    ${found.value?.length === 0 && html`<p class="muted">No tokens or passwords.</p>`}
    <ul class="usage-rows">
      ${found.value?.map(
        (one) =>
          html`<${Row} key=${one.id} one=${one} revoke=${() => {
            revoking.value = one;
          }} />`,
      )}
    </ul>
    ${
      revoking.value &&
      html`<${Revoke} one=${revoking.value} revoke=${revoke} close=${() => {
        revoking.value = null;
      }} />`
    }
  </section>`;
}

/** @param {{on: import("../vendor/preact.js").Signal<boolean>, word: string}} props */
function Toggle({ on, word }) {
  return html`<label class="row"><input type="checkbox" checked=${on.value} onChange=${(
    /** @type {any} */ event,
  ) => {
    on.value = event.target.checked;
  }} />${word}</label>`;
}

/** @param {{one: Token, revoke: () => void}} props */
function Row({ one, revoke }) {
  const { state, word } = tokenState(one, Date.now());
  return html`<li>
    <${Badge} state=${state} word=${word} />
    <strong class="breaks">${one.name}</strong>
    <span class="breaks">${one.kind}: ${one.roles.join(", ")}${one.everywhere && ", valid in every project"}${one.mode !== "tokens" && `, created in mode ${one.mode}: not accepted in other modes`}</span>
    <span class="muted">
      created by ${one.created_by} <${Ago} at=${one.created_at} />, last used <${Ago} at=${one.used_at} />${
        one.revoked_at
          ? html`, revoked by ${one.revoked_by} <${Ago} at=${one.revoked_at} />`
          : one.expires_at && html`, expires <${Ago} at=${one.expires_at} />`
      }
    </span>
    ${!one.revoked_at && html`<button class="danger" aria-label=${`Revoke ${one.kind} of ${one.name}`} onClick=${revoke}>Revoke…</button>`}
  </li>`;
}

/** @param {{one: Token, revoke: (one: Token) => void, close: () => void}} props */
function Revoke({ one, revoke, close }) {
  return html`<${Dialog} title=${`Revoke the ${one.kind} of ${one.name}?`} onClose=${close}>
    <p>Every process rejects it immediately. This cannot be undone, but you can create a new one.</p>
    <div class="acts">
      <button onClick=${close}>Cancel</button>
      <button class="danger" onClick=${() => revoke(one)}>Revoke</button>
    </div>
  <//>`;
}
