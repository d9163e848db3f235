// SPDX-License-Identifier: Apache-2.0

// What the pages have in common: a page's file holds its main part alone.

/**
 * @typedef {object} Page
 * @property {string} file in demo/, which is its address as well
 * @property {string} name in the navigation
 * @property {string} title of the document
 * @property {string} heading
 * @property {string} lead one sentence below the heading
 * @property {string} script
 * @property {string[]} styles
 * @property {string} code the file in demo/ that holds the lines which do it, between "// [code]" and "// [end]"
 * @property {string} [quote] another file of the repository that holds these lines
 */

/** The pages, as the navigation lists them. @type {Page[]} */
export const pages = [
  {
    file: 'index.html', name: 'Sublet', title: 'GPU mathematics on your own memory', heading: 'GPU mathematics on your own memory',
    lead: 'Matrices, expressions and kernels of yours, computed where the data is: in a typed array or a <code>GPUBuffer</code>.',
    script: 'first.mjs', styles: ['demo.css', 'first.css'], code: 'first-world.mjs',
  },
  {
    file: 'playground.html', name: 'Playground', title: 'a playground for matrices', heading: 'Playground',
    lead: 'Write a formula over matrices that you type, drop or draw from random numbers. Nothing leaves this page.',
    script: 'play.mjs', styles: ['demo.css', 'play.css'], code: 'play-run.mjs',
  },
  {
    file: 'digits.html', name: 'Digits', title: 'draw a digit', heading: 'Digits',
    lead: 'Draw a digit: a network answers at every stroke.',
    script: 'digits.mjs', styles: ['demo.css', 'digits.css'], code: 'digits-reader.mjs',
  },
  {
    file: 'race.html', name: 'Race', title: 'a race on your machine', heading: 'Race',
    lead: 'The same work by Sublet, by TensorFlow.js and by plain JavaScript, on your machine.',
    script: 'race.mjs', styles: ['demo.css', 'race.css'], code: 'race-worker.mjs',
  },
  {
    file: 'cruncher.html', name: 'Cruncher', title: 'your kernel on all devices', heading: 'Number cruncher',
    lead: 'One function of yours on several devices at once, each with as much of the work as its speed allows.',
    script: 'cruncher.mjs', styles: ['demo.css', 'cruncher.css'], code: 'cruncher.mjs',
  },
  {
    file: 'pipelines.html', name: 'Task graphs', title: 'task graphs on your GPU', heading: 'Task graphs',
    lead: 'Pictures go through a graph of tasks, on several devices at once; the timeline shows what ran where, and when.',
    script: 'pipelines.mjs', styles: ['demo.css', 'pipelines.css'], code: 'pipelines.mjs', quote: 'matrix/graph/pipelines/edges.go',
  },
];

const repository = 'https://github.com/sublet-gpu/sublet';

const icon = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><g fill='#2f6fed'><rect x='1' y='1' width='6' height='6' rx='1.5'/><rect x='9' y='9' width='6' height='6' rx='1.5'/></g><g fill='#93b4f5'><rect x='9' y='1' width='6' height='6' rx='1.5'/><rect x='1' y='9' width='6' height='6' rx='1.5'/></g></svg>`
  .replace(/[<>#]/g, encodeURIComponent);

const escape = (/** @type {string} */ text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');

/**
 * The lines that do what a page shows, as the page quotes them and as a link to the repository: those between two marks in
 * its file, or no quotation where there are no marks.
 * @param {Page} page @param {(file: string) => string} read
 */
function excerpt({code, quote}, read) {
  const lines = read(quote ? `../../${quote}` : code).split('\n'), from = lines.findIndex((line) => line.trim() === '// [code]') + 1;
  const to = lines.findIndex((line) => line.trim() === '// [end]');
  if (from === 0) return {link: `${repository}/blob/main/web/demo/${code}`, quoted: ''};
  if (to < from) throw new Error(`${quote ?? code} has a [code] without an [end]`);
  const part = lines.slice(from, to), indent = Math.min(...part.filter((line) => line.trim()).map((line) => line.search(/\S/)));
  return {
    link: `${repository}/blob/main/web/demo/${code}${quote ? '' : `#L${from + 1}-L${to}`}`,
    quoted: `<pre tabindex="0"><code>${escape(part.map((line) => line.slice(indent)).join('\n'))}</code></pre>`,
  };
}

/** A whole page. @param {string} file @param {string} content what its file holds @param {(file: string) => string} read reads a file of demo/ */
export function layout(file, content, read) {
  const page = pages.find((page) => page.file === file);
  if (!page) throw new Error(`layout.mjs does not know ${file}`);
  const links = pages.map(({file, name}) => `<a href="${file}"${file === page.file ? ' aria-current="page"' : ''}>${name}</a>`);
  const {link, quoted} = excerpt(page, read);
  return `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Sublet - ${page.title}</title>
  <link rel="icon" href="data:image/svg+xml,${icon}">
${page.styles.map((style) => `  <link rel="stylesheet" href="${style}">\n`).join('')}  <script type="module" src="${page.script}"></script>
</head>
<body>
  <a class="skip" href="#main">Skip to the page</a>
  <header>
    <a class="brand" href="index.html"><span class="mark" aria-hidden="true"><i></i><i></i><i></i><i></i></span>Sublet</a>
    <nav aria-label="Pages">${links.join(' ')}</nav>
    <p class="adapter" id="adapter" data-state="loading"><span class="dot"></span><span id="adapter-name">starting&hellip;</span></p>
  </header>

  <main id="main">
    <div class="intro">
      <h1>${page.heading}</h1>
      <p class="lead">${page.lead}</p>
    </div>

${content}  </main>

  <footer>
    ${quoted && `<details><summary>The lines that do it</summary>${quoted}</details>`}
    <p class="links"><a href="${link}">The code of this page</a> <a href="https://www.npmjs.com/package/sublet">sublet on npm</a> <a href="${repository}">Source</a></p>
    <p>Sublet is a Go library, compiled to WebAssembly for this page. Apache License 2.0.</p>
  </footer>
</body>
</html>
`;
}
