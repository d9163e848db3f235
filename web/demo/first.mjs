// SPDX-License-Identifier: Apache-2.0

import {init} from './index.mjs';
import {device, showAdapter, showNoAdapter} from './page.mjs';

try {
  showAdapter((await init({device})).info);
  document.body.dataset.ready = 'true';
} catch (error) {
  showNoAdapter(error);
}
