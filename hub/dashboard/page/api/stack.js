/** API paths of stacks. */

/**
 * The path of a stack after `/v1/PROJECT`: `/stacks/shop/ID`.
 * @param {string} name @param {string} id
 */
export function stackPath(name, id) {
  return `/stacks/${encodeURIComponent(name)}/${encodeURIComponent(id)}`;
}
