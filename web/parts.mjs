// SPDX-License-Identifier: Apache-2.0

// Bundles a module and its parts: the modules that it imports when it needs them, by import('./x.mjs'). Each becomes a file of its own in
// the folder parts, which takes what the module has, too, from the module, so that there is one class of errors, and a page that needs no
// part makes no request for one. Parts have no new URL('./file', import.meta.url), as bundlers may put them elsewhere. esbuild's own splitting would move all that is shared to files that every page has to wait for.

import {basename, dirname, join, relative, resolve} from 'node:path';
import {build} from 'esbuild';

/** The names that a module exports. @param {string} path */
async function exportsOf(path) {
  const leave = (/** @type {import('esbuild').PluginBuild} */ {onResolve}) => onResolve({filter: /./}, ({kind, path}) => kind === 'entry-point' ? null : {path, external: true});
  const {metafile} = await build({entryPoints: [path], bundle: true, format: 'esm', write: false, metafile: true, outdir: '.', plugins: [{name: 'leave', setup: leave}]});
  return Object.values(metafile.outputs)[0].exports;
}

/**
 * @param {string} entry the module @param {import('esbuild').BuildOptions & {outdir: string}} options
 * @param {Record<string, string>} [inlined] what belongs into the module, though it is imported when needed: files by their specifiers
 */
export async function bundle(entry, options, inlined = {}) {
  const root = dirname(entry), main = basename(entry), {plugins = []} = options;
  /** The parts' files. @type {Set<string>} */
  const parts = new Set();
  const nameOf = (/** @type {string} */ file) => relative(root, file).replaceAll('\\', '/');

  /** Leaves imports of parts to the time when they are needed. @param {string} folder of them, as the importing file sees it @returns {import('esbuild').Plugin} */
  const apart = (folder) => ({
    name: 'parts',
    setup: ({onResolve}) => onResolve({filter: /^\.{1,2}\//}, ({kind, path, resolveDir}) => {
      if (kind !== 'dynamic-import') return null;
      if (inlined[path]) return {path: inlined[path]};
      const file = resolve(resolveDir, path);
      parts.add(file);
      return {path: folder + nameOf(file), external: true};
    }),
  });

  const dry = await build({...options, entryPoints: [entry], plugins: [apart('./parts/'), ...plugins], write: false, metafile: true});
  const shared = new Map(Object.keys(dry.metafile.inputs).map((path) => [resolve(path), path]));
  /** What parts take from the module: the names under which it exports that, and from which file. @type {Map<string, {file: string, name: string}>} */
  const taken = new Map();

  /**
   * Takes what the module has from there.
   * @param {string} up the way from the part to the module @param {(mark: string) => boolean} used @returns {import('esbuild').Plugin}
   */
  const fromModule = (up, used) => ({
    name: 'shared',
    setup({onResolve, onLoad}) {
      onResolve({filter: /^\.{1,2}\//}, ({kind, path, resolveDir, namespace}) => {
        if (namespace === 'shared') return {path, external: true};
        const found = resolve(resolveDir, path);
        return kind === 'import-statement' && shared.has(found) ? {path: found, namespace: 'shared'} : null;
      });
      onLoad({filter: /./, namespace: 'shared'}, async ({path}) => {
        const marks = (await exportsOf(path)).map((name) => {
          const mark = `_${nameOf(path).replace(/\.mjs$/, '').replace(/\W/g, '_')}_${name}`;
          taken.set(mark, {file: path, name});
          return {mark, name};
        });
        const list = marks.filter(({mark}) => used(mark)).map(({mark, name}) => `${mark} as ${name}`);
        return {contents: `export {${list}} from '${up}${main}';`, resolveDir: root};
      });
    },
  });

  const needed = new Set();
  for (const file of parts) { // which grows meanwhile
    const name = nameOf(file), depth = name.split('/').length, up = '../'.repeat(depth);
    const how = (/** @type {(mark: string) => boolean} */ used) => ({
      ...options, keepNames: true, outdir: join(options.outdir, 'parts', dirname(name)), entryPoints: [file], plugins: [apart(`./${'../'.repeat(depth - 1)}`), fromModule(up, used), ...plugins],
    });
    // esbuild keeps names that are imported and not used.
    const {outputFiles: [{text}]} = await build({...how(() => true), write: false, minify: false, minifyIdentifiers: false, keepNames: false, sourcemap: false});
    const used = new Set([...taken.keys()].filter((mark) => text.split(new RegExp(`\\b${mark}\\b`)).length > 2));
    await build(how((mark) => used.has(mark)));
    for (const mark of used) needed.add(mark);
  }
  if (needed.size === 0) {
    await build({...options, entryPoints: [entry], plugins: [apart('./parts/'), ...plugins]});
    return;
  }
  const exported = [...needed].sort().map((mark) => {
    const {file, name} = /** @type {{file: string, name: string}} */ (taken.get(mark));
    return `export {${name} as ${mark}} from './${nameOf(file)}';`;
  });
  const stdin = {contents: [`export * from './${main}';`, ...exported].join('\n'), resolveDir: root, sourcefile: 'exports.mjs'};
  await build({...options, stdin, entryPoints: undefined, entryNames: main.replace(/\.mjs$/, ''), plugins: [apart('./parts/'), ...plugins]});
}
