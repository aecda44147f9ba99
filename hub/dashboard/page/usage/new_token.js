/** The form that creates a token or a password; the token is shown once. */

import { call } from "../api/client.js";
import { notify } from "../app/notices.js";
import { SecretDialog } from "../parts/copy.js";
import { Field } from "../parts/field.js";
import { asProblem, FieldErrorHelp, ProblemBox } from "../parts/problem.js";
import { findingsByField } from "../subscriptions/filters.js";
import { html, useSignal } from "../vendor/preact.js";

const ROLES = ["reader", "author", "reporter", "approver", "monitor", "operator", "admin"];
const FIELDS = ["name", "roles", "expires_in", "password"];

/** @param {FormData} form @returns {Record<string, unknown>} */
function tokenRequest(form) {
  /** @param {string} name */
  const text = (name) => String(form.get(name) ?? "").trim();
  const others = text("others")
    .split(/[\s,]+/)
    .filter(Boolean);
  return {
    name: text("name"),
    roles: [...form.getAll("role").map(String), ...others],
    expires_in: text("expires_in"),
    everywhere: form.has("everywhere"),
    // Not trimmed: spaces are part of a password.
    ...(form.get("password") ? { password: String(form.get("password")) } : {}),
  };
}

/**
 * everywhere: the user may create tokens valid in every project.
 * @param {{project: string, everywhere: boolean, made: () => void, done: () => void}} props
 */
export function NewToken({ project, everywhere, made, done }) {
  const failure = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const token = useSignal("");
  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    const body = tokenRequest(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)));
    busy.value = true;
    failure.value = null;
    try {
      const created = await call("POST", project, "/tokens", body);
      made();
      token.value = created.token ?? "";
      if (!created.token) {
        notify(`Created a password for ${created.name}.`, "good");
        done();
      }
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  }
  const problem = failure.value ? asProblem(failure.value) : null;
  const { byField, rest } = findingsByField(problem?.findings ?? [], FIELDS);
  const other = problem && (rest.length > 0 || problem.findings.length === 0);
  return html`<form class="usage-new column" onSubmit=${submit}>
      <${Field} label="Name" error=${byField.name}>
        ${(/** @type {object} */ needs) => html`<input name="name" required autocomplete="off" ...${needs} />`}
      <//>
      <fieldset>
        <legend>Roles</legend>
        <div class="row">
          ${ROLES.map((role) => html`<label key=${role} class="row"><input type="checkbox" name="role" value=${role} />${role}</label>`)}
        </div>
      </fieldset>
      <${Field} label="Other roles" hint="Custom roles that rules refer to, for example dba" error=${byField.roles}>
        ${(/** @type {object} */ needs) => html`<input name="others" autocomplete="off" ...${needs} />`}
      <//>
      <${Field} label="Expires in" hint="For example 90d or 12h. Leave empty for no expiry." error=${byField.expires_in}>
        ${(/** @type {object} */ needs) => html`<input name="expires_in" autocomplete="off" ...${needs} />`}
      <//>
      <${Field} label="Password" hint="Leave empty to create a token." error=${byField.password}>
        ${(/** @type {object} */ needs) => html`<input name="password" type="password" autocomplete="new-password" ...${needs} />`}
      <//>
      ${everywhere && html`<label class="row"><input type="checkbox" name="everywhere" />Valid in every project</label>`}
      ${other && html`<${ProblemBox} error=${problem} />`}
      ${problem && !other && html`<${FieldErrorHelp} problem=${problem} />`}
      <div class="row">
        <button class="first" disabled=${busy.value}>Create</button>
        <button type="button" onClick=${done}>Cancel</button>
      </div>
    </form>
    ${
      token.value &&
      html`<${SecretDialog} title="Token created" what="the token" text=${token.value} onClose=${done}>
        Anyone who has this token can authenticate with it.
      <//>`
    }`;
}
