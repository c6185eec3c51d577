#!/usr/bin/env python3
"""Prints the polynomial coefficients of src/numerics/mathfn.h (needs mpmath). Interpolation at Chebyshev nodes of the
remainder after the leading terms that are fixed to exact values; relative error within 2 % of minimax at these degrees."""
import struct
from mpmath import mp, mpf, cos, pi, exp, log, atanh, sqrt, matrix, lu_solve

mp.prec = 200


def fit(f, lo, hi, degree):
    n = degree + 1
    xs = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    a = matrix(n, n)
    b = matrix(n, 1)
    for i, x in enumerate(xs):
        for j in range(n):
            a[i, j] = x ** j
        b[i] = f(x)
    return list(lu_solve(a, b))


def f32(x):
    v = struct.unpack("<f", struct.pack("<f", float(x)))[0]
    return f"{v.hex()}f"


def show(name, cs):
    print(f"{name}: " + ", ".join(f32(c) for c in cs))


h = log(2) / 2 * mpf("1.0001")
# exp(r) = 1 + r + r^2 * P(r)
show("exp", fit(lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > 1e-12 else mpf(1) / 2, -h, h, 4))
# 2^f = 1 + f * P(f), |f| <= 1/2
show("exp2", fit(lambda r: (2**r - 1) / r if abs(r) > 1e-12 else log(2), -mpf("0.5"), mpf("0.5"), 6))
# log(1+f) with s = f/(2+f), z = s^2: 2s + s*z*P(z)
zmax = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2
show("log", fit(lambda z: (2 * atanh(sqrt(z)) - 2 * sqrt(z)) / (sqrt(z) * z) if z > 1e-24 else mpf(2) / 3, mpf("1e-30"), zmax, 3))
ln2hi = mpf(int(log(2) * 2**15)) / 2**15  # 15 bits: n * ln2hi is exact for |n| < 2^9
print("ln2hi", f32(ln2hi), "ln2lo", f32(log(2) - ln2hi), "log2e", f32(1 / log(2)))
