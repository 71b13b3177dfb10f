/** How long to wait before each attempt to come back; the last one holds for all that follow. */
const DELAYS = [150, 500, 1000, 2000, 4000, 8000];

/** After so many attempts in vain a person has to ask for the next. */
export const MOST_ATTEMPTS = 9;

/**
 * @param {number} attempt From 0.
 * @param {() => number} [random] Spreads the clients of a server that restarts.
 * @returns {number} Milliseconds.
 */
export function delayBefore(attempt, random = Math.random) {
  const delay = DELAYS[Math.min(attempt, DELAYS.length - 1)];
  return delay * (0.75 + 0.5 * random());
}
