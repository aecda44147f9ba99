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
 * @param {Token} token @param {number} at milliseconds since 1970
 */
function tokenState({ revoked_at, expires_at }, at) {
  if (revoked_at) return { state: "failed", word: "revoked" };
  if (expires_at && Date.parse(expires_at) <= at) return { state: "dropped", word: "expired" };
  return { state: "done", word: "active" };
}

/** @param {{project: string}} props */
export function Tokens({ project }) {
  const data = useSignal(/** @type {Token[] | null} */ (null));
  const failure = useSignal(/** @type {unknown} */ (null));
  const ended = useSignal(false);
  const everywhere = useSignal(false);
  const making = useSignal(false);
  const revoking = useSignal(/** @type {Token | null} */ (null));
  async function read() {
    const query = new URLSearchParams();
    if (ended.value) query.set("all", "true");
    if (everywhere.value) query.set("everywhere", "true");
    try {
      data.value = (await call("GET", project, `/tokens?${query}`)).tokens;
      failure.value = null;
    } catch (error) {
      failure.value = error;
    }
  }
  useEffect(() => {
    read();
  }, [project, ended.value, everywhere.value]);
  /** @param {Token} token */
  async function revoke(token) {
    const query = token.everywhere ? "?everywhere=true" : "";
    revoking.value = null;
    try {
      await call("DELETE", project, `/tokens/${token.id}${query}`);
    } catch (error) {
      failure.value = error;
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
      <${Toggle} on=${ended} word="Include revoked and expired" />
      ${all && html`<${Toggle} on=${everywhere} word="Valid in every project" />`}
    </div>
    <${ProblemBox} error=${failure.value} />
    ${
      making.value &&
      html`<${NewToken} project=${project} everywhere=${Boolean(all)} made=${read} done=${() => {
        making.value = false;
      }} />`
    }
    ${data.value?.length === 0 && html`<p class="muted">No tokens or passwords.</p>`}
    <ul class="usage-rows">
      ${data.value?.map(
        (item) =>
          html`<${Row} key=${item.id} token=${item} revoke=${() => {
            revoking.value = item;
          }} />`,
      )}
    </ul>
    ${
      revoking.value &&
      html`<${Revoke} token=${revoking.value} revoke=${revoke} close=${() => {
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

/** @param {{token: Token, revoke: () => void}} props */
function Row({ token, revoke }) {
  const { state, word } = tokenState(token, Date.now());
  return html`<li>
    <${Badge} state=${state} word=${word} />
    <strong class="breaks">${token.name}</strong>
    <span class="breaks">${token.kind}: ${token.roles.join(", ")}${token.everywhere && ", valid in every project"}${token.mode !== "tokens" && `, created in mode ${token.mode}: not accepted in other modes`}</span>
    <span class="muted">
      created by ${token.created_by} <${Ago} at=${token.created_at} />, last used <${Ago} at=${token.used_at} />${
        token.revoked_at
          ? html`, revoked by ${token.revoked_by} <${Ago} at=${token.revoked_at} />`
          : token.expires_at && html`, expires <${Ago} at=${token.expires_at} />`
      }
    </span>
    ${!token.revoked_at && html`<button class="danger" aria-label=${`Revoke ${token.kind} of ${token.name}`} onClick=${revoke}>Revoke…</button>`}
  </li>`;
}

/** @param {{token: Token, revoke: (token: Token) => void, close: () => void}} props */
function Revoke({ token, revoke, close }) {
  return html`<${Dialog} title=${`Revoke the ${token.kind} of ${token.name}?`} onClose=${close}>
    <p>Every process rejects it immediately. This cannot be undone, but you can create a new one.</p>
    <div class="acts">
      <button onClick=${close}>Cancel</button>
      <button class="danger" onClick=${() => revoke(token)}>Revoke</button>
    </div>
  <//>`;
}
