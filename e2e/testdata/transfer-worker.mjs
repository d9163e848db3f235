// SPDX-License-Identifier: Apache-2.0

// The other thread of transfer.mjs.

import {init} from '/dist/index.mjs';

const gpu = await init({device: 'simd', threads: 1});

const answers = {
  /** Squares a matrix that comes, and sends it back. */
  async square({matrix}) {
    const m = gpu.attach(matrix), message = await m.matmul(m).eval().detach();
    m.close();
    return {message, transfer: [message.data]};
  },

  /** Doubles the elements of shared memory each time that the other side has changed them, which a word of memory says. */
  async share({matrix, turns}) {
    const m = gpu.attach(matrix);
    for (let turn = 0; turn < 4; turn += 2) {
      Atomics.wait(turns, 0, turn); // until the page has had its turn
      await m.touch().assign(m.mul(2)).sync();
      Atomics.store(turns, 0, turn + 2);
      Atomics.notify(turns, 0);
    }
    m.close();
    return {message: 'done', transfer: []};
  },
};

onmessage = ({data: {what, ...more}}) => answers[what](more).then(({message, transfer}) => postMessage({message}, transfer), (error) => postMessage({error: error?.stack ?? String(error)}));
postMessage({message: 'ready'});
