/** Sign-in with a token or a password. */

import { mode, provider, signIn } from "../api/session.js";
import { currentPlace, href, navigate } from "../app/route.js";
import { Field } from "../parts/field.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";

/** Storage key of the last project. */
const PROJECT = "headgate.project";

/**
 * project: from the address, or "". over: the session has ended.
 * @param {{project: string, over?: boolean}} props
 */
export function SignIn({ project, over = false }) {
  const way = useSignal("token");
  const failure = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);

  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const named = String(form.get("project") ?? "").trim();
    busy.value = true;
    failure.value = null;
    try {
      if (mode !== "none") await signIn(named, credentialFrom(form, way.value));
      localStorage.setItem(PROJECT, named);
      if (named !== project) navigate(href(named, "inbox"));
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  }

  const known = project || localStorage.getItem(PROJECT) || (mode === "none" ? "default" : "");
  return html`<section class="signin card" aria-labelledby="signin">
    <h1 id="signin">${mode === "none" ? "Open a project" : "Sign in"}</h1>
    ${!over && html`<p class="what">Infrastructure changes that pause for approval.</p>`}
    ${over && html`<p role="alert">Your session has ended. Your work on this page is kept. Sign in to continue.</p>`}
    <form onSubmit=${submit}>
      <${Field} label="Project">
        ${(/** @type {object} */ needs) =>
          html`<input name="project" required autocomplete="organization" defaultValue=${known} ...${needs} />`}
      <//>
      ${
        provider &&
        html`<button type="button" class="first" onClick=${toProvider}>Sign in with ${provider}</button>
        <p class="muted">Or with a token or password of this server:</p>`
      }
      ${mode !== "none" && html`<${MethodFields} way=${way} />`}
      <${ProblemBox} error=${failure.value} />
      <button class=${provider ? "" : "first"} disabled=${busy.value}>${mode === "none" ? "Open" : "Sign in"}</button>
    </form>
  </section>`;
}

/**
 * Redirects to the OpenID provider, which sends the browser back to this page, or to the inbox.
 * @param {MouseEvent} event
 */
function toProvider(event) {
  const form = /** @type {HTMLButtonElement} */ (event.currentTarget).form;
  const field = /** @type {HTMLInputElement | null} */ (form?.elements.namedItem("project"));
  if (!field?.reportValidity()) return;
  const named = field.value.trim();
  localStorage.setItem(PROJECT, named);
  const here = currentPlace.value.project === named && currentPlace.value.page !== "";
  const page = here ? location.hash : href(named, "inbox");
  const query = new URLSearchParams({ page });
  location.assign(`v1/${encodeURIComponent(named)}/session/oidc?${query}`);
}

/** @param {{way: import("../vendor/preact.js").Signal<string>}} props */
function MethodFields({ way }) {
  const token = way.value === "token";
  return html`<fieldset>
      <legend class="only-read">Sign-in method</legend>
      ${["token", "password"].map(
        (item) => html`<label key=${item} class="row">
          <input type="radio" name="way" value=${item} checked=${way.value === item}
            onChange=${() => {
              way.value = item;
            }} />
          Use a ${item}
        </label>`,
      )}
    </fieldset>
    ${
      token
        ? html`<${Field} label="Token" key="token">
            ${(/** @type {object} */ needs) =>
              html`<input name="token" type="password" required autocomplete="off" ...${needs} />`}
          <//>`
        : html`<${Field} label="Name" key="user">
              ${(/** @type {object} */ needs) =>
                html`<input name="user" required autocomplete="username" ...${needs} />`}
            <//>
            <${Field} label="Password" key="password">
              ${(/** @type {object} */ needs) =>
                html`<input name="password" type="password" required autocomplete="current-password" ...${needs} />`}
            <//>`
    }`;
}

/** @param {FormData} form @param {string} way */
function credentialFrom(form, way) {
  /** @param {string} name */
  const field = (name) => String(form.get(name) ?? "");
  if (way === "token") return { token: field("token").trim() };
  return { user: field("user"), password: field("password") };
}
