export const tests = {nnNothing() {}};
