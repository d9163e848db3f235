// SPDX-License-Identifier: Apache-2.0

import {Connection} from './connection.mjs';
import {hasGPU, moduleOf} from './loader.mjs';
import {long} from './message.mjs';
import {Command} from './protocol.mjs';

/**
 * @typedef {{devices: number, mode: number, sync: boolean, inFlight: number}} Run
 * @typedef {{took: number, up: number, down: number, lanes: {name: string, runs: number, busy: number}[],
 *   tasks: {name: string, runs: number, devices: number[], run: number, wait: number}[]}} Stats
 */

/** The bits of a number as a float32. @param {number} x */
const bits = (x) => new Uint32Array(Float32Array.of(x).buffer)[0];

/** @param {Run} run */
const runWords = ({devices, mode, sync, inFlight}) => [...long(devices), mode, Number(sync), ...long(inFlight)];

/** The connection to the Go program of wasm/pipelines, for the page that shows task graphs. */
export class Pipelines extends Connection {
  /** @protected @override */
  eager = true;
  /** The device, as Gpu.info. @type {any} */
  info;

  /** @param {URL} address of the program @param {string} device "webgpu", "simd" or the better one */
  static async open(address, device) {
    const webgpu = device === 'webgpu' || device !== 'simd' && await hasGPU(), driver = webgpu ? 'browser' : 'simd';
    const {connection, info} = await Connection.start(Pipelines, moduleOf(address, '', webgpu ? 1 : undefined), 'sublet_pipelines', {driver});
    connection.info = info;
    return connection;
  }

  /**
   * Runs the pipeline of images until stop is called.
   * @param {Run & {width: number, height: number, sigma: number, gain: number}} options
   * @param {{frame?: (n: number) => Uint8Array | undefined, show: (frame: any) => void}} hooks frame: pictures that are not a moving scene
   * @returns {Promise<void>}
   */
  async edges(options, {frame, show}) {
    const {width, height, sigma, gain} = options;
    await this.ask(Command.Edges, [
      ...runWords(options), ...long(width), ...long(height), bits(sigma), bits(gain), this.put(frame), this.put(show),
    ]);
  }

  /**
   * Trains a network.
   * @param {Run & {data: string, hidden: number, batch: number, rate: number, steps: number, saveEvery: number}} options
   * @param {{data: Function, step: Function, picture: Function}} hooks @returns {Promise<void>}
   */
  async train(options, {data, step, picture}) {
    const {hidden, batch, rate, steps, saveEvery} = options;
    await this.ask(Command.Train, [
      ...runWords(options), this.put(options.data), ...long(hidden), ...long(batch), bits(rate), ...long(steps), ...long(saveEvery),
      this.put(data), this.put(step), this.put(picture),
    ]);
  }

  stop() { this.call(Command.Stop, []); }
  /** @returns {string} */ trace() { return this.call(Command.Trace, []); }
  /** @returns {string} */ dot() { return this.call(Command.DOT, []); }
  /** @returns {Stats} */ graphStats() { return this.call(Command.GraphStats, []); }
}
