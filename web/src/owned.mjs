// SPDX-License-Identifier: Apache-2.0

/** The matrices that objects such as tensors of values close when they are closed themselves. @type {WeakMap<object, readonly object[]>} */
const owned = new WeakMap();

/** Notes that an object closes others, so that a scope that returns it leaves these open. @template {object} T @param {T} object @param {readonly object[]} parts @returns {T} */
export function owns(object, parts) {
  owned.set(object, parts);
  return object;
}

/** What an object closes, undefined if nobody said so. @param {object} object */
export const ownedBy = (object) => owned.get(object);
