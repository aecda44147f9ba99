/** A token or a password that is given out; the token is shown this once. */

import { call } from "../api/client.js";
import { notify } from "../app/notices.js";
import { Once } from "../parts/copy.js";
import { Field } from "../parts/field.js";
import { asProblem, ProblemBox } from "../parts/problem.js";
import { byField } from "../subscriptions/wanted.js";
import { html, useSignal } from "../vendor/preact.js";

const ROLES = ["reader", "author", "approver", "operator", "admin"];
const FIELDS = ["name", "roles", "expires_in", "password"];

/** @param {FormData} form @returns {Record<string, unknown>} */
export function wish(form) {
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
    // As it was typed: blanks are letters of it.
    ...(form.get("password") ? { password: String(form.get("password")) } : {}),
  };
}

/** everywhere: one may give out what holds in every project. @param {{project: string, everywhere: boolean, made: () => void, done: () => void}} props */
export function NewToken({ project, everywhere, made, done }) {
  const wrong = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);
  const token = useSignal("");
  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    const body = wish(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)));
    busy.value = true;
    wrong.value = null;
    try {
      const given = await call("POST", project, "/tokens", body);
      made();
      token.value = given.token ?? "";
      if (!given.token) {
        notify(`${given.name} has a password.`, "good");
        done();
      }
    } catch (error) {
      wrong.value = error;
    } finally {
      busy.value = false;
    }
  }
  const problem = wrong.value ? asProblem(wrong.value) : null;
  const { of, rest } = byField(problem?.findings ?? [], FIELDS);
  const other = problem && (rest.length > 0 || problem.findings.length === 0);
  return html`<form class="usage-new column" onSubmit=${submit}>
      <${Field} label="Name" wrong=${of.name}>
        ${(/** @type {object} */ needs) => html`<input name="name" required autocomplete="off" ...${needs} />`}
      <//>
      <fieldset>
        <legend>Roles</legend>
        <div class="row">
          ${ROLES.map((role) => html`<label key=${role} class="row"><input type="checkbox" name="role" value=${role} />${role}</label>`)}
        </div>
      </fieldset>
      <${Field} label="Other roles" hint="of your own, that rules name, such as dba" wrong=${of.roles}>
        ${(/** @type {object} */ needs) => html`<input name="others" autocomplete="off" ...${needs} />`}
      <//>
      <${Field} label="Holds for" hint="90d, 12h; empty: until it is revoked" wrong=${of.expires_in}>
        ${(/** @type {object} */ needs) => html`<input name="expires_in" autocomplete="off" ...${needs} />`}
      <//>
      <${Field} label="Password" hint="empty: a token is made" wrong=${of.password}>
        ${(/** @type {object} */ needs) => html`<input name="password" type="password" autocomplete="new-password" ...${needs} />`}
      <//>
      ${everywhere && html`<label class="row"><input type="checkbox" name="everywhere" />in every project</label>`}
      ${other && html`<${ProblemBox} error=${problem} />`}
      <div class="row">
        <button class="first" disabled=${busy.value}>Give it out</button>
        <button type="button" onClick=${done}>Cancel</button>
      </div>
    </form>
    ${
      token.value &&
      html`<${Once} title="The token" what="the token" text=${token.value} onClose=${done}>
        Whoever has it is let in.
      <//>`
    }`;
}
