/** Confirms a login of the command line, `headgate login --web`, which opens this page. */

import { call } from "../api/client.js";
import { session } from "../api/session.js";
import { currentPlace, href, navigate } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Copy } from "../parts/copy.js";
import { Field } from "../parts/field.js";
import { asProblem, FieldErrorHelp, ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";

/**
 * port: of the command on this machine, which receives the login code; 0: the user pastes it.
 * @param {URLSearchParams} query
 */
function readLogin(query) {
  const port = Number(query.get("port") ?? "0");
  const challenge = query.get("challenge") ?? "";
  const valid = Number.isInteger(port) && port >= 0 && port < 65536 && challenge !== "";
  return { port, challenge, state: query.get("state") ?? "", valid };
}

/**
 * Sends the browser to the command, which always listens on this machine.
 * @param {{port: number, state: string}} login @param {Record<string, string>} outcome
 */
function returnToCommand({ port, state }, outcome) {
  const query = new URLSearchParams({ ...outcome, state });
  location.assign(`http://127.0.0.1:${port}/callback?${query}`);
}

/** @param {{project: string}} props */
export function CliLogin({ project }) {
  const failure = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const code = useSignal("");
  const login = readLogin(currentPlace.value.query);

  /** @param {SubmitEvent} event */
  async function confirm(event) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const body = { user_code: String(form.get("code") ?? ""), code_challenge: login.challenge };
    busy.value = true;
    failure.value = null;
    try {
      const confirmed = await call("POST", project, "/session/oidc/codes", body);
      if (login.port > 0) returnToCommand(login, { code: confirmed.code });
      else code.value = confirmed.code;
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  }

  function cancel() {
    if (login.port > 0) returnToCommand(login, { error: "access_denied" });
    else navigate(href(project, "inbox"));
  }

  if (!login.valid) {
    return html`<section class="signin card" aria-labelledby="cli-login">
      <h1 id="cli-login">Sign in to the command line</h1>
      <p role="alert">The address is incomplete. Run <code>headgate login --web</code> again.</p>
    </section>`;
  }
  const problem = failure.value ? asProblem(failure.value) : null;
  const ofCode = problem?.place === "user_code" ? `${problem.message}. ${problem.remedy}` : "";
  return html`<section class="signin card" aria-labelledby="cli-login">
    <h1 id="cli-login">Sign in to the command line</h1>
    ${
      code.value
        ? html`<p role="status">Paste this code into the terminal within 5 minutes. Give it to no one else.</p>
          <input class="code" readonly value=${code.value} aria-label="Code for the terminal" />
          <div class="row"><${Copy} text=${code.value} what="the code" /></div>`
        : html`<p>
            The terminal will act as <strong>${session.value?.name}</strong> in the project ${project}. Its login ends
            ${" "}<${Ago} at=${session.value?.expires_at} />.
          </p>
          <p>
            <strong>Continue only if you have just run <code>headgate login</code> yourself.</strong> If a person, a
            message or another page sent you here or gave you a code, choose Cancel.
          </p>
          <form onSubmit=${confirm}>
            <${Field} label="Code that your terminal shows" hint="8 letters, for example BCDF-GHJK" error=${ofCode}>
              ${(/** @type {object} */ needs) =>
                html`<input name="code" required autocomplete="off" spellcheck=${false} ...${needs} />`}
            <//>
            ${problem && (ofCode ? html`<${FieldErrorHelp} problem=${problem} />` : html`<${ProblemBox} error=${problem} />`)}
            <div class="row">
              <button class="first" disabled=${busy.value}>Sign in the terminal</button>
              <button type="button" onClick=${cancel}>Cancel</button>
            </div>
          </form>`
    }
  </section>`;
}
