/** Requests to the server this page came from, and what goes wrong with them. */

/** @typedef {{place: string, reason: string, remedy: string, code?: string}} Finding */

/** Seconds that a request may take: the server gives up sooner. */
const PATIENCE = 90;

/** What the server said no to, or why it could not be asked. */
export class Problem extends Error {
  /**
   * @param {{status?: number, type: string, message: string, place?: string, remedy?: string,
   *   findings?: Finding[], told?: any, wait?: number}} said told: the whole `error`, such as who
   *   decided instead; wait: seconds until it is worth trying again
   */
  constructor(said) {
    super(said.message);
    this.status = said.status ?? 0;
    this.type = said.type;
    this.place = said.place ?? "";
    this.remedy = said.remedy ?? "";
    this.findings = said.findings ?? [];
    this.told = said.told ?? {};
    this.wait = said.wait ?? 0;
  }
}

/** What every request says of who sends it; api/session.js fills it in. */
export const credentials = {
  /** @type {Record<string, string>} */
  headers: {},
  /** Called when the server no longer knows who we are. */
  over: () => {},
  /**
   * Called when another page of ours signed in since; returns whether it is worth sending again.
   * @type {(project: string) => Promise<boolean>}
   */
  renew: async () => false,
};

/**
 * The address of something in a project. path: with its query, after `/v1/PROJECT`.
 * @param {string} project
 * @param {string} path
 */
export function address(project, path) {
  return new URL(`v1/${encodeURIComponent(project)}${path}`, document.baseURI).href;
}

/**
 * Ask, and return the answer's document (null: it has none). Throws Problem.
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
  if (!answer.ok) throw await problemIn(answer);
  const text = await answer.text();
  return text === "" ? null : JSON.parse(text);
}

/** Whether the second secret of a session was another one's. @param {Response} answer */
async function isOfAnotherSession(answer) {
  if (answer.status !== 403) return false;
  return (await problemIn(answer.clone())).type === "CrossSiteRequest";
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

/** Whether something was given up because nobody wants it any more. @param {unknown} error */
export function isAborted(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

function unreachable() {
  return new Problem({
    type: "Unreachable",
    message: "The server does not answer",
    remedy: "Nothing is lost here. Try again when it is back; `headgate admin doctor` looks at it.",
  });
}

/**
 * What an answer that is no success says, in Headgate's form or the Orchestration API's.
 * @param {Response} answer
 */
export async function problemIn(answer) {
  /** @type {any} */
  let said = {};
  try {
    said = await answer.json();
  } catch {
    // A proxy's page, perhaps: its status says enough.
  }
  const error = said.error ?? {};
  return new Problem({
    status: answer.status,
    type: error.type ?? String(answer.status),
    message: error.message ?? said.explanation ?? `The server answered ${answer.status}`,
    place: error.place,
    remedy: error.remedy,
    findings: error.findings ?? said.findings,
    wait: Number(answer.headers.get("Retry-After")) || 0,
    told: error,
  });
}
