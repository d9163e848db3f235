// SPDX-License-Identifier: Apache-2.0

/** Who waits for a promise that may stay as long as the page, and what is called then. @type {WeakMap<Promise<unknown>, Map<WeakRef<any>, (object: any) => void>>} */
const lists = new WeakMap();

const collected = new FinalizationRegistry((/** @type {() => void} */ drop) => drop());

/**
 * Calls a function with an object when a promise is fulfilled, unless the object was collected before. Nothing of the object stays with the promise:
 * with promise.then the function would, for each of all objects that there ever were.
 * @template {object} T @param {Promise<unknown>} promise @param {T} object @param {(object: T) => void} call does not refer to the object
 */
export function whenever(promise, object, call) {
  const list = lists.get(promise) ?? listOf(promise), ref = new WeakRef(object), weak = new WeakRef(list); // its functions may refer to a device, which may have the object
  list.set(ref, call);
  collected.register(object, () => { weak.deref()?.delete(ref); });
}

/** @param {Promise<unknown>} promise */
function listOf(promise) {
  /** @type {Map<WeakRef<any>, (object: any) => void>} */
  const list = new Map();
  lists.set(promise, list);
  promise.then(() => {
    lists.delete(promise);
    for (const [ref, call] of list) {
      const object = ref.deref();
      if (object) call(object);
    }
  });
  return list;
}
