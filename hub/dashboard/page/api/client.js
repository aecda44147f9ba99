/** Requests to the server that served this page, their paths and their errors. */

/** @typedef {{place: string, reason: string, remedy: string, code?: string}} Finding */

/** Request timeout in seconds, longer than the server's own. */
const PATIENCE = 90;

/** An error response of the server, or a request that did not reach it. */
export class Problem extends Error {
  /**
   * @param {{status?: number, type: string, message: string, place?: string, remedy?: string,
   *   findings?: Finding[], help?: string, details?: any, wait?: number}} error help: the URL of the page about its
   *   type; details: the complete `error` object; wait: seconds until a retry makes sense
   */
  constructor(error) {
    super(error.message);
    this.status = error.status ?? 0;
    this.type = error.type;
    this.place = error.place ?? "";
    this.remedy = error.remedy ?? "";
    this.findings = error.findings ?? [];
    this.help = error.help ?? "";
    this.details = error.details ?? {};
    this.wait = error.wait ?? 0;
  }
}

/** Headers and callbacks for authentication; set by api/session.js. */
export const credentials = {
  /** @type {Record<string, string>} */
  headers: {},
  /** Called when the session is no longer valid. */
  over: () => {},
  /**
   * Called when another tab has signed in since; returns whether to send the request again.
   * @type {(project: string) => Promise<boolean>}
   */
  renew: async () => false,
};

/**
 * The URL of a project resource. path: after `/v1/PROJECT`, including the query.
 * @param {string} project
 * @param {string} path
 */
export function address(project, path) {
  return new URL(`v1/${encodeURIComponent(project)}${path}`, document.baseURI).href;
}

/**
 * Sends a request and returns the decoded JSON body (null if it is empty). Throws Problem.
 * @param {string} method
 * @param {string} project
 * @param {string} path with its query
 * @param {unknown} [body]
 * @param {{signal?: AbortSignal, headers?: Record<string, string>}} [options]
 * @returns {Promise<any>}
 */
export async function call(method, project, path, body, options = {}) {
  const url = address(project, path);
  let answer = await send(method, url, body, options);
  if ((await isOfAnotherSession(answer)) && (await credentials.renew(project)))
    answer = await send(method, url, body, options);
  if (answer.status === 401) credentials.over();
  if (!answer.ok) throw await problemOf(answer);
  const text = await answer.text();
  return text === "" ? null : JSON.parse(text);
}

/**
 * Whether the server rejected the CSRF token as one of another session.
 * @param {Response} answer
 */
async function isOfAnotherSession(answer) {
  if (answer.status !== 403) return false;
  return (await problemOf(answer.clone())).type === "CrossSiteRequest";
}

/**
 * @param {string} method
 * @param {string} url
 * @param {unknown} body
 * @param {{signal?: AbortSignal, headers?: Record<string, string>}} options
 */
async function send(method, url, body, { signal, headers: more }) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json", ...credentials.headers, ...more };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const bound = AbortSignal.timeout(PATIENCE * 1000);
  try {
    return await fetch(url, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, bound]) : bound,
      redirect: "error",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw unreachable();
  }
}

/** Whether the request was aborted. @param {unknown} error */
export function isAborted(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

function unreachable() {
  return new Problem({
    type: "Unreachable",
    message: "The server is not responding",
    remedy:
      "Nothing you entered is lost. Try again when the server is back; `headgate admin doctor` diagnoses it.",
  });
}

/**
 * The error of a response, in Headgate's format or the Orchestration API's.
 * @param {Response} answer
 */
export async function problemOf(answer) {
  /** @type {any} */
  let body = {};
  try {
    body = await answer.json();
  } catch {
    // Not JSON, for example a proxy's error page: use the status code.
  }
  const error = body.error ?? {};
  return new Problem({
    status: answer.status,
    type: error.type ?? String(answer.status),
    message: error.message ?? body.explanation ?? `The server returned status ${answer.status}`,
    place: error.place,
    remedy: error.remedy,
    findings: error.findings ?? body.findings,
    help: error.help,
    wait: Number(answer.headers.get("Retry-After")) || 0,
    details: error,
  });
}

/**
 * The path of a stack after `/v1/PROJECT`: `/stacks/shop/ID`.
 * @param {string} name @param {string} id
 */
export function stackPath(name, id) {
  return `/stacks/${encodeURIComponent(name)}/${encodeURIComponent(id)}`;
}
