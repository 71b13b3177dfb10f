/** Requests to the server that delivered the page. */

/** Where the page lies; the API is found from there, also behind a proxy that adds a folder. */
const BASE = new URL("../../", import.meta.url);

/** What went wrong with a request, in words for a person. */
export class ApiProblem extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, code?: string | null}} [details]
   */
  constructor(message, { status = 0, code = null } = {}) {
    super(message);
    this.name = "ApiProblem";
    this.status = status;
    this.code = code;
  }

  /** Whether the server wants a key, or another one. */
  get needsKey() {
    return this.status === 401;
  }
}

/**
 * @param {string} path Relative to the page, such as `v1/models`.
 * @param {"http" | "ws"} [kind]
 * @returns {URL}
 */
export function address(path, kind = "http") {
  const url = new URL(path, BASE);
  if (kind === "ws") url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url;
}

async function problemOf(response) {
  let error = null;
  try {
    ({ error } = await response.json());
  } catch {
    // A proxy's error page; the status has to do.
  }
  const message = error?.message ?? `The server answered ${response.status} ${response.statusText}.`;
  return new ApiProblem(message, { status: response.status, code: error?.code ?? null });
}

/**
 * Fetches something and throws an `ApiProblem` unless all is well.
 * @param {string} path
 * @param {{key?: string, json?: object, signal?: AbortSignal}} [options]
 * @returns {Promise<Response>}
 */
export async function request(path, { key = "", json, signal } = {}) {
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (json !== undefined) headers["Content-Type"] = "application/json";
  const body = json === undefined ? undefined : JSON.stringify(json);
  let response;
  try {
    response = await fetch(address(path), { method: body === undefined ? "GET" : "POST", headers, body, signal });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new ApiProblem("The server cannot be reached.");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}
