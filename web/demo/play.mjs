// SPDX-License-Identifier: Apache-2.0

import {init} from './index.mjs';
import {$, bytes, device, download, duration, showAdapter, showError, showNoAdapter} from './page.mjs';
import {writeCsv} from './play-files.mjs';
import {FormulaError, read} from './play-formula.mjs';
import {Operand, card} from './play-operand.mjs';
import {run} from './play-run.mjs';
import {extent, greys, number, paint, tabulate} from './play-view.mjs';

/** @typedef {Awaited<ReturnType<typeof run>>} Result */

/** What the operands are at first. */
const START = {A: '1 2 3\n4 5 6', B: '1 0\n0 1\n1 1', C: ''};

/** @type {[label: string, formula: string][]} */
const EXAMPLES = [
  ['Product', 'A * B + 1'], ['Softmax', 'softmax(A)'], ['Standardise', '(A - meancols(A)) / stdcols(A)'],
  ['Least squares', 'solve(T(A) * A + eye(3), T(A))'], ['Ripples', 'sin(hypot(linspace(-30, 30, 480), T(linspace(-20, 20, 320))))'],
  ['Noise', 'normal(256, 256) * normal(256, 256) / 16'],
];

/** From this many elements on a result is shown as a heat map, unless another view was chosen. */
const MANY = 400;

const formula = /** @type {HTMLInputElement} */ ($('formula'));
const button = /** @type {HTMLButtonElement} */ ($('run'));

/** The result that is shown. @type {(Result & {data: ArrayLike<number>}) | undefined} */
let shown;
/** @type {string | undefined} */
let chosen;

/** @param {string} view */
function show(view) {
  if (!shown) return;
  const {rows, cols, data} = shown;
  for (const button of document.querySelectorAll('[data-view]')) {
    button.setAttribute('aria-pressed', String(/** @type {HTMLElement} */ (button).dataset.view === view));
  }
  $('numbers').hidden = view !== 'numbers';
  $('picture').hidden = view === 'numbers';
  if (view === 'numbers') return tabulate($('table'), {rows, cols, data});
  const canvas = /** @type {HTMLCanvasElement} */ ($('canvas')), kind = view === 'heat' ? 'heat' : 'grey', range = extent(data);
  const {least, most} = kind === 'heat' ? range : greys(range);
  paint(canvas, {rows, cols, data}, kind);
  canvas.style.width = `min(100%, ${Math.max(cols, Math.min(480, 24 * cols))}px)`;
  $('least').textContent = number(least);
  $('most').textContent = number(most);
  $('scale').className = `scale ${kind}`;
  $('under').textContent = '';
}

/** Tells which element is under the pointer. @param {PointerEvent} event */
function point(event) {
  if (!shown?.data.length) return;
  const {rows, cols, data} = shown, box = $('canvas').getBoundingClientRect();
  const i = Math.min(rows - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * rows)));
  const j = Math.min(cols - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * cols)));
  $('under').textContent = `[${i}, ${j}] is ${number(data[i * cols + j])}`;
}

/** @param {import('./index.mjs').Plan} plan */
function showPlan({kernels, temporaries, temporaryBytes}) {
  const row = (/** @type {string} */ tag, /** @type {(string | number)[]} */ words) => {
    const line = document.createElement('tr');
    line.append(...words.map((word) => Object.assign(document.createElement(tag), {textContent: String(word)})));
    return line;
  };
  $('kernels').textContent = `${kernels.length} ${kernels.length === 1 ? 'kernel' : 'kernels'}${temporaries ? `, ${bytes(temporaryBytes)} in between` : ''}`;
  $('plan').replaceChildren(row('th', ['kernel', 'workgroups', 'writes', 'read', 'written']), ...kernels.map((k) =>
    row('td', [k.kernel, k.groups.join(' \u00d7 '), `${k.rows} \u00d7 ${k.cols} ${k.dtype}`, bytes(k.bytesRead), bytes(k.bytesWritten)])));
  $('wgsl').replaceChildren(...kernels.map((k, i) => {
    const details = document.createElement('details'), pre = Object.assign(document.createElement('pre'), {textContent: k.wgsl.trim().replace(/\n{3,}/g, '\n\n'), tabIndex: 0});
    details.append(Object.assign(document.createElement('summary'), {textContent: `WGSL of kernel ${i + 1}, ${k.kernel}`}), pre);
    return details;
  }));
}

/** @param {Result} result @param {string} js @param {string[]} used */
function showResult(result, js, used) {
  if (result.dtype === 'complex64') throw new Error('The result is complex: take real(), imag(), abs() or angle() of it.');
  shown = {...result, data: /** @type {ArrayLike<number>} */ (/** @type {unknown} */ (result.values))};
  $('shape').textContent = `${result.rows} \u00d7 ${result.cols} ${result.dtype}`;
  $('fact-first').textContent = duration(result.times.first);
  $('fact-second').textContent = duration(result.times.second);
  $('fact-reading').textContent = duration(result.times.reading);
  $('fact-up').textContent = bytes(result.up);
  $('fact-down').textContent = bytes(result.down);
  delete $('result').dataset.stale;
  $('result').hidden = $('how').hidden = false;
  const wraps = used.map((name) => `const ${name} = gpu.wrap(${name.toLowerCase()}, ...);\n`).join('');
  $('program').textContent = `${wraps}const values = await ${js}.read();`;
  showPlan(result.plan);
  show(chosen ?? (result.rows * result.cols >= MANY ? 'heat' : 'numbers'));
  for (const id of ['save-npy', 'save-csv']) $(id).removeAttribute('disabled');
  $('said').textContent = `The result has ${result.rows} rows and ${result.cols} columns.`;
}

/** The formula and what was typed, from the address; what is not there is as at first. */
function linked() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has('f')) formula.value = given.get('f') ?? '';
  return Object.entries(START).map(([name, text]) => /** @type {const} */ ([name, given.get(name) ?? text]));
}

/** Puts the formula and what was typed into the address, so that it can be shown to others. @param {Operand[]} operands */
function link(operands) {
  const typed = operands.map(({name, typed}) => [name, typed]);
  history.replaceState(null, '', `#${new URLSearchParams([['f', formula.value], ...typed])}`);
}

/** Reads the formula, and which operands it uses. @param {import('./index.mjs').Gpu} gpu @param {Operand[]} operands */
function understand(gpu, operands) {
  /** @type {Set<string>} */
  const used = new Set();
  const found = read(gpu, formula.value, (name) => {
    const operand = operands.find((operand) => operand.name === name);
    if (!operand) return undefined;
    used.add(name);
    try {
      return operand.matrix(gpu);
    } catch (error) {
      throw new FormulaError(/** @type {Error} */ (error).message, name);
    }
  }, operands.map(({name}) => name));
  return {...found, used: [...used]};
}

/** @param {unknown} error @param {Operand[]} operands */
function refuse(error, operands) {
  const operand = error instanceof FormulaError && operands.find(({name}) => name === error.operand);
  if (operand) operand.complain(/** @type {Error} */ (error).message);
  showError(error);
  $('result').dataset.stale = 'true';
  formula.setAttribute('aria-invalid', String(!operand));
}

/** @param {import('./index.mjs').Gpu} gpu @param {Operand[]} operands */
async function compute(gpu, operands) {
  if (button.disabled) return;
  button.disabled = true;
  button.textContent = 'Running\u2026';
  $('result').setAttribute('aria-busy', 'true');
  $('error').hidden = true;
  formula.setAttribute('aria-invalid', 'false');
  await new Promise((done) => setTimeout(done)); // so that it is seen
  try {
    const {x, js, made, used} = understand(gpu, operands);
    try {
      showResult(await run(gpu, x), js, used);
      link(operands);
    } finally {
      for (const matrix of made) matrix.close();
    }
  } catch (error) {
    refuse(error, operands);
  } finally {
    button.disabled = false;
    button.textContent = 'Run';
    $('result').setAttribute('aria-busy', 'false');
  }
}

/** @param {import('./index.mjs').Gpu} gpu @param {() => void} go @param {Operand[]} operands */
function wire(gpu, go, operands) {
  button.addEventListener('click', go);
  addEventListener('hashchange', () => location.reload()); // somebody else's formula
  document.addEventListener('keydown', (event) => {
    const inFormula = event.target === formula && !event.isComposing;
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey || inFormula)) return;
    event.preventDefault();
    go();
  });
  // What misses the cards goes to the first operand that is empty; otherwise the browser would leave the page for the file.
  document.addEventListener('dragover', (event) => event.preventDefault());
  document.addEventListener('drop', (event) => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    void (operands.find(({empty}) => empty) ?? operands[operands.length - 1]).open(event.dataTransfer?.files[0]);
  });
  $('examples').append(...EXAMPLES.map(([label, text]) => {
    const choice = Object.assign(document.createElement('button'), {type: 'button', textContent: label, title: text});
    choice.addEventListener('click', () => {
      formula.value = text;
      chosen = undefined;
      go();
    });
    return choice;
  }));
  for (const view of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-view]'))) {
    view.addEventListener('click', () => show(chosen = view.dataset.view ?? 'numbers'));
  }
  $('canvas').addEventListener('pointermove', point);
  $('save-npy').addEventListener('click', async () => {
    if (shown) download(await gpu.save({data: Float32Array.from(shown.data), shape: [shown.rows, shown.cols]}, {format: 'npy'}), 'result.npy');
  });
  $('save-csv').addEventListener('click', () => {
    if (shown) download(writeCsv(shown), 'result.csv');
  });
}

async function main() {
  $('operands').innerHTML = Object.keys(START).map(card).join('');
  const opening = init({device}), operands = linked().map(([name, text]) => new Operand(name, text, () => { $('error').hidden = true; }, opening));
  let gpu;
  try {
    gpu = await opening;
  } catch (error) {
    return showNoAdapter(error);
  }
  showAdapter(gpu.info);
  const go = () => { void compute(gpu, operands); };
  wire(gpu, go, operands);
  button.disabled = false;
  await compute(gpu, operands);
  document.body.dataset.ready = 'true';
}

main();
