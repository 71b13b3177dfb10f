/**
 * @param {number[]} values
 * @param {number} share Between 0 and 1.
 * @returns {number | null} The value that this share of the values does not exceed; null without values.
 */
export function quantile(values, share) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/**
 * Counts values into bins.
 * @param {number[]} values
 * @param {number[]} edges Upper edges, rising; a last bin takes what exceeds them.
 * @returns {number[]}
 */
export function histogram(values, edges) {
  const counts = new Array(edges.length + 1).fill(0);
  for (const value of values) {
    const bin = edges.findIndex((edge) => value <= edge);
    counts[bin < 0 ? edges.length : bin] += 1;
  }
  return counts;
}
