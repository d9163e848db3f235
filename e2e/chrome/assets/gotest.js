// SPDX-License-Identifier: Apache-2.0

// Runs a Go test binary in a page or, when the page says so, in a worker. What the program prints and how it ends goes
// to the runner through gotestReport, a function that the runner puts into the page, or by requests from a browser that the
// runner does not control: its pages start the program themselves.
'use strict';

const inPage = typeof document !== 'undefined';

/** The request before, which the next one waits for: the messages keep their order. */
let sent = Promise.resolve();

/** @param {string} message */
const tell = (message) => {
  if (globalThis.gotestReport) return gotestReport(message);
  sent = sent.then(() => fetch('/report', {method: 'POST', body: message}));
};

/** @param {{output?: string, error?: boolean, exit?: number, fatal?: string}} message */
const report = (message) => inPage ? tell(JSON.stringify(message)) : postMessage(message);

/** @param {unknown} error */
const describe = (error) => error instanceof Error ? `${error.message}\n${error.stack}` : String(error);

/** Loads classic scripts, one after the other. @param {{scripts: string[], module: boolean}} config */
async function load(config) {
  if (!inPage && !config.module) return importScripts(...config.scripts);
  for (const url of config.scripts) {
    if (!inPage) {
      await import(url);
      continue;
    }
    const script = document.createElement('script');
    script.src = url;
    await new Promise((done, failed) => {
      script.onload = done;
      script.onerror = () => failed(new Error(`cannot load ${url}`));
      document.head.append(script);
    });
  }
}

/** Sends on what Go writes to its files 1 and 2. */
function capture() {
  const decoders = [1, 2].map(() => new TextDecoder());
  globalThis.fs.writeSync = (fd, bytes) => {
    const output = decoders[fd === 2 ? 1 : 0].decode(bytes, {stream: true});
    report({output, error: fd === 2});
    return bytes.length;
  };
}

/** @param {{args: string[], env: Record<string, string>, scripts: string[], module: boolean}} config */
async function run(config) {
  await load(config);
  capture();
  const go = new Go();
  go.argv = config.args;
  go.env = config.env ?? {};
  globalThis.gotestProgram = go; // for tests that count what the program holds
  let code;
  go.exit = (c) => { code = c; };
  const {instance} = await WebAssembly.instantiateStreaming(fetch('/test.wasm'), go.importObject);
  await globalThis.beforeGo?.(instance);
  await go.run(instance);
  report({exit: code ?? 0});
}

/** Starts the program; called by the runner. */
async function gotest() {
  try {
    const config = await (await fetch('/gotest.json')).json();
    if (!config.worker) return await run(config);
    const worker = new Worker('/gotest.js', {type: config.module ? 'module' : 'classic'});
    worker.onmessage = (event) => report(event.data);
    worker.onerror = (event) => report({fatal: `worker: ${event.message}`});
    worker.postMessage(config);
  } catch (error) {
    report({fatal: describe(error)});
  }
}

if (inPage && location.search === '?start') gotest();

if (!inPage) {
  onmessage = (event) => run(event.data).catch((error) => report({fatal: describe(error)}));
}
