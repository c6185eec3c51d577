#!/usr/bin/env python3
"""Writes src/tokenizer/unicode_ranges.inc from Debian's unicode-data: the coarse class of every code point as sorted
ranges. Run: tools/gen_unicode_tables.py [/usr/share/unicode] > src/tokenizer/unicode_ranges.inc"""
import pathlib
import re
import sys

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode")
BIT = {"L": 1, "M": 2, "N": 4, "P": 8, "S": 16}
SPACE = 32


def main():
    classes = bytearray(0x110000)
    first = None
    for line in (FOLDER / "UnicodeData.txt").read_text().splitlines():
        code, name, category = line.split(";")[:3]
        code = int(code, 16)
        if name.endswith(", First>"):
            first = code
            continue
        for c in range(first if first is not None else code, code + 1):
            classes[c] = BIT.get(category[0], 0)
        first = None
    version = re.search(r"PropList-([\d.]+)\.txt", (FOLDER / "PropList.txt").read_text()).group(1)
    for line in (FOLDER / "PropList.txt").read_text().splitlines():
        m = re.match(r"([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*;\s*White_Space", line)
        if m:
            for c in range(int(m[1], 16), int(m[2] or m[1], 16) + 1):
                classes[c] |= SPACE
    entries = [f"0x{c << 8 | classes[c]:X}" for c in range(0x110000) if c == 0 or classes[c] != classes[c - 1]]
    print(f"// Unicode {version}: each entry is first code point << 8 | class bits; it holds until the next entry.")
    print("// Made by tools/gen_unicode_tables.py.")
    line = ""
    for e in entries:
        if len(line) + len(e) + 2 > 120:
            print(line.rstrip())
            line = ""
        line += e + ", "
    print(line.rstrip())


main()
