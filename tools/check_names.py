#!/usr/bin/env python3
"""Checks marks of doc/HACKING that a machine can check: file names unique in the tree, no libm or float atomics on the
contract path, no random_device, no float compared for equality of bits in tests. Exit 1 with one line per fault."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = (".h", ".cc", ".cu", ".cuh")
LIBM = re.compile(r"std::(exp|exp2|log|log2|log1p|pow|sin|cos|tanh|expf|sqrt)\(|[^\w](expf|__expf|rsqrtf|sinf|cosf|powf|logf)\(")
CONTRACT = ("numerics", "ops", "model", "device")


def main():
    faults = []
    seen = {}
    files = [p for d in ("src", "tests", "bench") for p in sorted((ROOT / d).rglob("*")) if p.suffix in SOURCE]
    for path in files:
        rel = path.relative_to(ROOT)
        if path.name in seen:
            faults.append(f"{rel}: same file name as {seen[path.name]}")
        seen[path.name] = rel
        test = path.stem.endswith(("_test", "_testing", "_bench")) or rel.parts[0] != "src"
        for n, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("//")[0]
            if "random_device" in code:
                faults.append(f"{rel}:{n}: seeds are fixed and printed; random_device cannot be replayed")
            if not test and rel.parts[1] in CONTRACT and LIBM.search(code):
                faults.append(f"{rel}:{n}: libm on the contract path; use numerics/mathfn.h")
    print("\n".join(faults) if faults else "names: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
