#!/usr/bin/env python3
"""Writes tests/golden/tiny-v32/tokens.json: what Hugging Face's `tokenizers` makes of the texts below and of seeded
random ones, with models/tiny-v32/tokenizer.json. In a throwaway environment:
  python3 -m venv /tmp/v && /tmp/v/bin/pip install tokenizers==0.23.2 && /tmp/v/bin/python tools/make_tokenizer_oracle.py
With a folder as argument it prints what its tokenizer.json gives instead (to check a real vocabulary)."""
import json
import pathlib
import random
import sys

from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXTS = [
    "", " ", "\n", "a", "Hello, world!", "The quick brown fox jumps over the lazy dog.", "What is 7 + 5?",
    "rfid501.go 1234567", "3.14159", "x1y22z333w4444", "2024-01-02T03:04:05", " 42", "v2.0.0-rc10",
    "Hello世界 カタカナ한국어!\r\n\r\n  next", "a\n\n b", "don't stop", "tail   ", "   lead", "f(x)=y; //note\n",
    "三加五等于多少？", "naïve café — résumé", "e\u0301\u0301 \u0301x", "๑๒๓ ١٢٣٤ Ⅳ½²", "😀👩‍👩‍👧 🇩🇪!", "\u00a0\u2003\u3000x\u3000",
    "\x00\x01\x02a", "\t\tif (a) {\r\n\t\t}\r\n", "゠・ー゛゜ゝ一龥龦", "\u180ea\u180e ", "\u0085\u2028\u2029z",
    "<think>2+2</think>", "<｜User｜>hi<｜Assistant｜></think>ok<｜end▁of▁sentence｜>", "<|EOT|><|User|>", "<｜User", "_foo__Bar [x]",
    "a" * 300, "ab" * 100, "1" * 50, " " * 40 + "\n" * 5 + "x", "!" * 30 + "\n\n", "https://example.org/a?b=c&d=%20",
]
ALPHABET = "aeiou thERs19 \n\r\t.,!?'\"#$-_<>｜|▁é\u0301ßжЖ中国かカ・한😀\u00a0\u200b٣²"


def main():
    rng = random.Random(20240601)
    texts = TEXTS + ["".join(rng.choice(ALPHABET) for _ in range(rng.randint(1, 60))) for _ in range(120)]
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "models/tiny-v32"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    rows = [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in texts]
    for row in rows:
        row["decoded"] = tokenizer.decode(row["ids"], skip_special_tokens=False)
    lines = ",\n".join(json.dumps(r, ensure_ascii=True) for r in rows)
    out = '{"made_by": "tokenizers 0.23.2", "texts": [\n' + lines + "\n]}\n"
    if len(sys.argv) > 1:
        sys.stdout.write(out)
    else:
        (ROOT / "tests/golden/tiny-v32/tokens.json").write_text(out)


main()
