# SPDX-License-Identifier: Apache-2.0
"""Makes the files in this folder that NumPy wrote, and checks the one that package npy wrote.

    python3 make.py           writes stored.npz, deflated.npz, version2.npy and object.npz
    python3 make.py check     compares written.npz and packed.npz with what they should hold

They were made with NumPy 1.24.2 and Python 3.11.
"""
import sys
import numpy as np

TYPES = ['b1', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f2', 'f4', 'f8', 'c8', 'c16']


def values(descr, n):
    """0, 1, 2, ... as the type has them: bool by parity, complex with i+1 as the imaginary part."""
    i = np.arange(n)
    if descr == 'b1':
        return (i % 2).astype('b1')
    if descr[0] == 'c':
        return (i + 1j * (i + 1)).astype(descr)
    return i.astype(descr)


def arrays():
    a = {}
    for t in TYPES:
        v = values(t, 24).reshape(2, 3, 4)
        a[t + '/c'] = v
        a[t + '/fortran'] = np.asfortranarray(v)
        a[t + '/big'] = v.astype('>' + t)
        a[t + '/scalar'] = values(t, 2)[1]
        a[t + '/empty'] = np.zeros((0, 3), t)
    return a


def make():
    np.savez('stored.npz', **arrays())
    np.savez_compressed('deflated.npz', **arrays())
    with open('version2.npy', 'wb') as f:
        np.lib.format.write_array(f, np.asfortranarray(values('f4', 6).reshape(2, 3)), version=(2, 0))
    np.savez('object.npz', text=np.array(['a', 'b']), object=np.array([None]), record=np.zeros(1, 'f4,i2'),
             date=np.zeros(1, 'M8[s]'), raw=np.zeros(1, 'V2'), number=values('f4', 3))


def check():
    want = {t: values(t, 24).reshape(2, 3, 4) for t in TYPES}
    want['empty'] = np.zeros((0, 3), 'f4')
    want['a/scalar'] = values('f4', 2)[1]
    for path in ['written.npz', 'packed.npz']:
        with np.load(path) as got:
            assert got.zip.testzip() is None
            assert sorted(got.files) == sorted(want), got.files
            for name, v in want.items():
                assert got[name].dtype == v.dtype and got[name].shape == v.shape and (got[name] == v).all(), name
    print('good')


if sys.argv[1:] == ['check']:
    check()
else:
    make()
