// SPDX-License-Identifier: Apache-2.0

/** Every error of this package. */
export class SubletError extends Error {
  constructor(code: string, message: string, options?: { cause?: unknown; offset?: number });
  readonly name: "SubletError";
  /**
   * What went wrong: `ErrShape`, `ErrIndex`, `ErrInvalid`, `ErrNil`, `ErrSize`, `ErrLimit`, `ErrShort`, `ErrStride`,
   * `ErrAlignment`, `ErrCapacity`, `ErrExternalResize`, `ErrView`, `ErrSparse`, `ErrOrder`, `ErrUnsupported`,
   * `ErrForeign`, `ErrNotSquare`, `ErrSingular`, `ErrNotPosDef`, `ErrClosed`, `ErrMapped`, `ErrSyntax`, `ErrCompile`, `ErrNoAdapter`, `ErrNoMemory`, `ErrDeviceLost`,
   * `ErrInternal`, or `exited` when the WebAssembly program has died. Of files also `ErrFormat`, `ErrTruncated`, `ErrDuplicate`,
   * `ErrType`, `ErrTooLarge`, `ErrAborted`, and `ErrStream` when a stream or response of yours fails. Of crunchers also
   * `ErrKernel`, `ErrRange`, `ErrLength`, `ErrName`, `ErrAccess`, `ErrBatch`, `ErrDevices`, `ErrMigration`, `ErrStale` and
   * `ErrReadOnly`.
   */
  readonly code: string;
  /** Of what is wrong with a file: where, in bytes from its start. */
  readonly offset?: number;
}
