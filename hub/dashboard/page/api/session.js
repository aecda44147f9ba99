/** The current session: user, project and rights. */

import { signal } from "../vendor/preact.js";
import { call, credentials, Problem } from "./client.js";

/**
 * aliases: names of the user after `user:` in hook rules.
 * @typedef {{name: string, aliases: string[], project: string, roles: string[], rights: string[],
 *   everywhere: boolean, csrf: string | null, expires_at: string | null}} Session
 */

/** The server's authentication mode: none, tokens or keystone. */
export const mode =
  document.querySelector('meta[name="headgate-auth"]')?.getAttribute("content") ?? "none";

/** The name of the OpenID provider; "" if there is none. */
export const provider =
  document.querySelector('meta[name="headgate-provider"]')?.getAttribute("content") ?? "";

const NAME = "headgate.name";
/** Storage key that tells the other windows of the browser about a sign-in. */
const SIGNED_IN = "headgate.signed-in";

/**
 * The session; null if no user is signed in.
 * @type {import("../vendor/preact.js").Signal<Session | null>}
 */
export const session = signal(null);
/**
 * asking: not known yet. over: the session ended while its page is still open.
 * @type {import("../vendor/preact.js").Signal<"asking" | "in" | "out" | "over">}
 */
export const state = signal("asking");

/**
 * Whether the user has a right: read, write, answer, operate or administer.
 * @param {string} right
 */
export function may(right) {
  return session.value?.rights.includes(right) ?? false;
}

/**
 * Loads the session of a project. Throws Problem, except if no user is signed in.
 * @param {string} project
 */
export async function enter(project) {
  credentials.headers = mode === "none" ? userHeader() : {};
  try {
    setSession(await call("GET", project, "/session"));
  } catch (error) {
    if (!(error instanceof Problem) || ![401, 403].includes(error.status)) throw error;
    session.value = null;
    state.value = "out";
  }
}

/**
 * Throws Problem.
 * @param {string} project
 * @param {{token: string} | {user: string, password: string}} credential
 */
export async function signIn(project, credential) {
  setSession(await call("POST", project, "/session", credential));
  localStorage.setItem(SIGNED_IN, String(Date.now()));
}

/** Whether a sign-out is in progress: requests that its end refuses are no reason for a dialog. */
let signingOut = false;

/** Throws Problem. */
export async function signOut() {
  signingOut = true;
  try {
    if (session.value) await call("DELETE", session.value.project, "/session");
  } catch (error) {
    // 401: the session had already ended.
    if (!(error instanceof Problem) || error.status !== 401) throw error;
  } finally {
    signingOut = false;
  }
  session.value = null;
  state.value = "out";
}

/** Sets the user name, which the server trusts with `[auth] mode = "none"`. @param {string} name */
export async function setUserName(name) {
  if (name) localStorage.setItem(NAME, name);
  else localStorage.removeItem(NAME);
  if (session.value) await enter(session.value.project);
}

/** @param {Session} found */
function setSession(found) {
  session.value = found;
  state.value = "in";
  credentials.headers = mode === "none" ? userHeader() : {};
  if (found.csrf) credentials.headers = { "X-CSRF-Token": found.csrf };
}

/** @returns {Record<string, string>} */
function userHeader() {
  const name = localStorage.getItem(NAME);
  return name ? { "X-Auth-User": name } : {};
}

credentials.renew = async (project) => {
  const before = session.value;
  if (!before?.csrf) return false;
  const response = await call("GET", project, "/session");
  // Another user signed in: do not send this page's input as theirs.
  if (response.name !== before.name || response.csrf === before.csrf) return false;
  setSession(response);
  return true;
};

/** If the user signed in again in another window, continue here as well. */
function renewIfOver() {
  const project = session.value?.project;
  if (state.value === "over" && project) credentials.renew(project).catch(() => {});
}
addEventListener("focus", renewIfOver);
addEventListener("storage", (event) => {
  if (event.key === SIGNED_IN) renewIfOver();
});

credentials.over = () => {
  if (state.value === "in" && !signingOut) state.value = "over";
};
