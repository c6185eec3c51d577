#!/usr/bin/env python3
"""Checks that every #include under src/ follows the arrows of cmake/Layers.cmake, that op contract headers stay free of
device, thread and tuning headers, and that floating-point flags stand in one file. Exit 1 with one line per fault."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = re.compile(r"fast-math|ffp-contract|-fmad|-ftz|prec-div|prec-sqrt|-Ofast|unsafe-math")


def arrows():
    table = {}
    for layer, deps in re.findall(r'^\s*"(\w+):([\w,]*)"', (ROOT / "cmake/Layers.cmake").read_text(), re.M):
        table[layer] = {layer, *filter(None, deps.split(","))}
    return table


def main():
    table = arrows()
    faults = []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".h", ".cc", ".cu", ".cuh", ".inc"):
            continue
        rel = path.relative_to(ROOT / "src")
        layer = rel.parts[0]
        if layer not in table:
            faults.append(f"{rel}: folder {layer} is not in cmake/Layers.cmake")
            continue
        test = path.stem.endswith(("_test", "_bench"))
        for n, line in enumerate(path.read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not m:
                continue
            target = m.group(1).split("/")[0]
            if not (ROOT / "src" / m.group(1)).exists():
                faults.append(f"{rel}:{n}: {m.group(1)} is not a path from src/")
            elif target not in table[layer] and not test:
                faults.append(f"{rel}:{n}: {layer} may not use {target}")
            if layer == "forensics" and not test and re.search(r"_cpu|_simd\.h|_cuda", m.group(1)) and "ops/" in m.group(1):
                faults.append(f"{rel}:{n}: forensics may use op contracts and references only")
            if layer == "ops" and path.suffix == ".h" and path.stem == path.parent.name:
                if re.search(r"^device/|_tuning\.h", m.group(1)):
                    faults.append(f"{rel}:{n}: a contract header may not include {m.group(1)}")
    for path in [ROOT / "CMakeLists.txt", ROOT / "CMakePresets.json", ROOT / "Makefile", *ROOT.glob("src/**/CMakeLists.txt"),
                 *ROOT.glob("tests/**/CMakeLists.txt"), *ROOT.glob("cmake/*.cmake")]:
        if path.name == "NumericFlags.cmake":
            continue
        for n, line in enumerate(path.read_text().splitlines(), 1):
            if FLAGS.search(line.split("#")[0]):
                faults.append(f"{path.relative_to(ROOT)}:{n}: floating-point flags belong in cmake/NumericFlags.cmake")
    print("\n".join(faults) if faults else "layers: ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
