// SPDX-License-Identifier: Apache-2.0

// What the demo's pages have in common: their files hold what stands below the navigation.

/** The pages, as the navigation lists them; their addresses are those of the files in demo/. */
const pages = [
  {
    file: 'index.html', name: 'Matrices', title: 'matrices on your GPU', tagline: 'Matrix mathematics on your GPU, in memory you own',
    script: 'demo.mjs', styles: ['demo.css'],
  },
  {
    file: 'cruncher.html', name: 'Number cruncher', title: 'your kernel on all devices', tagline: 'Your kernel on all devices, shared out by their speed',
    script: 'cruncher.mjs', styles: ['demo.css', 'cruncher.css'],
  },
  {
    file: 'pipelines.html', name: 'Task graphs', title: 'task graphs on your GPU', tagline: 'Kernels that run as their inputs arrive, on several devices at once',
    script: 'pipelines.mjs', styles: ['demo.css', 'pipelines.css'],
  },
];

const icon = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><g fill='#2f6fed'><rect x='1' y='1' width='6' height='6' rx='1.5'/><rect x='9' y='9' width='6' height='6' rx='1.5'/></g><g fill='#93b4f5'><rect x='9' y='1' width='6' height='6' rx='1.5'/><rect x='1' y='9' width='6' height='6' rx='1.5'/></g></svg>`
  .replace(/[<>#]/g, encodeURIComponent);

/** A whole page. @param {string} file @param {string} content what its file holds */
export function layout(file, content) {
  const page = pages.find((page) => page.file === file);
  if (!page) throw new Error(`layout.mjs does not know ${file}`);
  const links = pages.map(({file, name}) => `<a href="${file}"${file === page.file ? ' aria-current="page"' : ''}>${name}</a>`);
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
  <header>
    <h1><span class="mark" aria-hidden="true"><i></i><i></i><i></i><i></i></span>Sublet</h1>
    <p class="tagline">${page.tagline}</p>
    <p class="adapter" id="adapter" data-state="loading"><span class="dot"></span><span id="adapter-name">starting&hellip;</span></p>
  </header>

  <nav aria-label="Pages">${links.join(' ')}</nav>

${content}</body>
</html>
`;
}
