/** Who is signed in, where, and what they may. */

import { signal } from "../vendor/preact.js";
import { call, credentials, Problem } from "./client.js";

/**
 * @typedef {{name: string, project: string, roles: string[], rights: string[],
 *   everywhere: boolean, csrf: string | null, expires_at: string | null}} Session
 */

/** How this server finds out who somebody is: none, tokens or keystone. */
export const mode =
  document.querySelector('meta[name="headgate-auth"]')?.getAttribute("content") ?? "none";

const NAME = "headgate.name";

/** Who is signed in; null when nobody is. @type {import("../vendor/preact.js").Signal<Session | null>} */
export const session = signal(null);
/**
 * asking: not known yet. over: there was one, and its page is still there.
 * @type {import("../vendor/preact.js").Signal<"asking" | "in" | "out" | "over">}
 */
export const state = signal("asking");

/** Whether whoever is signed in has the right: read, write, answer, operate or administer. @param {string} right */
export function may(right) {
  return session.value?.rights.includes(right) ?? false;
}

/** Find out who we are in a project. Throws Problem, except that nobody is signed in. @param {string} project */
export async function enter(project) {
  credentials.headers = mode === "none" ? named() : {};
  try {
    took(await call("GET", project, "/session"));
  } catch (error) {
    if (!(error instanceof Problem) || ![401, 403].includes(error.status)) throw error;
    session.value = null;
    state.value = "out";
  }
}

/**
 * Throws Problem.
 * @param {string} project
 * @param {{token: string} | {user: string, password: string}} said
 */
export async function signIn(project, said) {
  took(await call("POST", project, "/session", said));
}

/** Throws Problem. */
export async function signOut() {
  if (session.value) await call("DELETE", session.value.project, "/session");
  session.value = null;
  state.value = "out";
}

/** With `[auth] mode = "none"` everybody is believed their name. @param {string} name */
export async function callMyself(name) {
  if (name) localStorage.setItem(NAME, name);
  else localStorage.removeItem(NAME);
  if (session.value) await enter(session.value.project);
}

/** @param {Session} found */
function took(found) {
  session.value = found;
  state.value = "in";
  credentials.headers = mode === "none" ? named() : {};
  if (found.csrf) credentials.headers = { "X-CSRF-Token": found.csrf };
}

/** @returns {Record<string, string>} */
function named() {
  const name = localStorage.getItem(NAME);
  return name ? { "X-Auth-User": name } : {};
}

credentials.renew = async (project) => {
  const before = session.value;
  if (!before?.csrf) return false;
  const found = await call("GET", project, "/session");
  // Somebody else signed in: what is on the page is not theirs to send.
  if (found.name !== before.name || found.csrf === before.csrf) return false;
  took(found);
  return true;
};

// Signed in again in another window, one goes on here, too.
addEventListener("focus", () => {
  const project = session.value?.project;
  if (state.value === "over" && project) credentials.renew(project).catch(() => {});
});

credentials.over = () => {
  if (state.value === "in") state.value = "over";
};
