/** Where a stack is in the API. */

/**
 * The path of a stack, to follow `/v1/PROJECT`: `/stacks/shop/ID`.
 * @param {string} name @param {string} id
 */
export function stackPath(name, id) {
  return `/stacks/${encodeURIComponent(name)}/${encodeURIComponent(id)}`;
}
