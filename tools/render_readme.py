#!/usr/bin/env python3
"""Replaces the transcripts between <!-- BEGIN name --> and <!-- END name --> in README.md with the real output of the
program, so that they cannot go stale. Needs build/cpu/samebits."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = {
    "prove": ("make prove", ["prove", "models/tiny-v32", "--report", "build/prove.html"]),
    "broken": ("build/cpu/samebits prove models/tiny-v32 --break topk-set-sorted-late --only again",
               ["prove", "models/tiny-v32", "--break", "topk-set-sorted-late", "--only", "again"]),
    "repro": ("build/cpu/samebits repro index-order --runs 2", ["repro", "index-order", "--runs", "2"]),
}


def output(arguments):
    run = subprocess.run(["build/cpu/samebits", *arguments], cwd=ROOT, capture_output=True, text=True)
    return run.stdout.strip()


def main():
    path = ROOT / "README.md"
    text = path.read_text()
    for name, (command, arguments) in RUNS.items():
        block = f"<!-- BEGIN {name} -->\n```\n$ {command}\n{output(arguments)}\n```\n<!-- END {name} -->"
        text = re.sub(rf"<!-- BEGIN {name} -->.*?<!-- END {name} -->", lambda _: block, text, flags=re.S)
    verbs = re.findall(r"^  (\w+) +(.+)$", output(["--help"]), re.M)
    rows = "\n".join(f"| `{verb}` | {what} |" for verb, what in verbs)
    table = f"<!-- BEGIN verbs -->\n| verb | job |\n|---|---|\n{rows}\n<!-- END verbs -->"
    text = re.sub(r"<!-- BEGIN verbs -->.*?<!-- END verbs -->", lambda _: table, text, flags=re.S)
    path.write_text(text)


if __name__ == "__main__":
    main()
