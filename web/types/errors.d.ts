// SPDX-License-Identifier: Apache-2.0

/** Every error of this package. */
export class SubletError extends Error {
  /**
   * Makes an error, as your own code may want to.
   *
   * @example
   * throw new SubletError("ErrInvalid", "no picture was chosen");
   */
  constructor(code: string, message: string, options?: { cause?: unknown; offset?: number });
  /**
   * The name of the class.
   *
   * @example
   * new SubletError("ErrShape", "2x3 by 2x2").name; // "SubletError"
   */
  readonly name: "SubletError";
  /**
   * What went wrong: `ErrShape`, `ErrIndex`, `ErrInvalid`, `ErrNil`, `ErrSize`, `ErrLimit`, `ErrShort`, `ErrStride`,
   * `ErrAlignment`, `ErrCapacity`, `ErrExternalResize`, `ErrView`, `ErrSparse`, `ErrOrder`, `ErrUnsupported`,
   * `ErrForeign`, `ErrNotSquare`, `ErrSingular`, `ErrNotPosDef`, `ErrClosed`, `ErrMapped`, `ErrSyntax`, `ErrCompile`, `ErrNoAdapter`, `ErrNoMemory`, `ErrDeviceLost`,
   * `ErrInternal`, or `exited` when the WebAssembly program has died. Of files also `ErrFormat`, `ErrTruncated`, `ErrDuplicate`,
   * `ErrType`, `ErrTooLarge`, `ErrAborted`, and `ErrStream` when a stream or response of yours fails. Of crunchers also
   * `ErrKernel`, `ErrRange`, `ErrLength`, `ErrName`, `ErrAccess`, `ErrBatch`, `ErrDevices`, `ErrMigration`, `ErrStale`, `ErrCallback` and
   * `ErrReadOnly`, of task graphs `ErrAffinity`.
   *
   * @example
   * try {
   *   gpu.ones(2, 3).add(gpu.ones(3, 2));
   * } catch (error) {
   *   if (!(error instanceof SubletError) || error.code !== "ErrShape") throw error;
   * }
   */
  readonly code: string;
  /**
   * Of what is wrong with a file: where, in bytes from its start.
   *
   * @example
   * await gpu.loadParams(new Uint8Array(8)).catch((error: SubletError) => console.warn(error.code, error.offset));
   */
  readonly offset?: number;
}
