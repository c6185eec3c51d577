#!/usr/bin/env python3
"""Times samebits beside Hugging Face transformers on the CPU in one run: prefill of a prompt and single-stream decode of
the same checkpoint, alternating the two engines, medians of --runs.

    python3 -m venv .venv && .venv/bin/pip install torch==2.11.0 transformers==5.17.0
    .venv/bin/python bench/peers/hf_cpu.py models/tiny-v32 --samebits build/cpu/samebits

Prints one JSON line per engine and the ratios. What is compared: both use all cores torch was given (--threads); Hugging
Face in bfloat16 as released (--dtype float32 for fp32), eager attention and experts, KV cache on for decode; samebits in
its default profile. Needs torch and transformers; says so if they are missing."""
import argparse
import json
import statistics
import subprocess
import sys
import time


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("model")
    ap.add_argument("--samebits", default="build/cpu/samebits")
    ap.add_argument("--prompt-tokens", type=int, default=2000)
    ap.add_argument("--decode-tokens", type=int, default=64)
    ap.add_argument("--runs", type=int, default=5)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--dtype", choices=["bfloat16", "float32"], default="float32")
    args = ap.parse_args()
    try:
        import torch
        import transformers
    except ImportError as missing:
        sys.exit(f"hf_cpu.py: {missing.name} cannot be imported; install torch and transformers (see --help)")

    torch.set_num_threads(args.threads)
    config = transformers.AutoConfig.from_pretrained(args.model)
    kind = getattr(transformers, config.architectures[0])
    model = kind.from_pretrained(args.model, dtype=getattr(torch, args.dtype), attn_implementation="eager").eval()
    # The same ids on both sides: a fixed walk through the vocabulary below the special ids.
    ids = [(i * 7919 + 11) % (config.vocab_size - 64) + 32 for i in range(args.prompt_tokens)]
    tokens = torch.tensor([ids])

    def hf_run():
        with torch.inference_mode():
            begin = time.perf_counter()
            out = model(tokens, use_cache=True, logits_to_keep=1)
            prefill = time.perf_counter() - begin
            cache, last = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
            begin = time.perf_counter()
            for _ in range(args.decode_tokens):
                out = model(last, past_key_values=cache, use_cache=True)
                last = out.logits[:, -1].argmax(-1, keepdim=True)
            return prefill, time.perf_counter() - begin

    def ours_run():
        command = [args.samebits, "bench", args.model, "--prompt-tokens", str(args.prompt_tokens), "--decode-tokens",
                   str(args.decode_tokens), "--runs", "1", "--threads", str(args.threads), "--json"]
        line = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        return line["prefill_seconds"], line["decode_seconds"]

    results = {"samebits": [], "huggingface": []}
    hf_run()
    for _ in range(args.runs):
        results["samebits"].append(ours_run())
        results["huggingface"].append(hf_run())
    rates = {}
    for engine, runs in results.items():
        prefill = args.prompt_tokens / statistics.median(r[0] for r in runs)
        decode = args.decode_tokens / statistics.median(r[1] for r in runs)
        rates[engine] = prefill, decode
        print(json.dumps({"engine": engine, "prefill_tokens_per_s": round(prefill, 1), "decode_tokens_per_s": round(decode, 1),
                          "prompt_tokens": args.prompt_tokens, "runs": args.runs, "threads": args.threads,
                          "dtype": args.dtype if engine == "huggingface" else "profile deepseek"}))
    a, b = rates["samebits"], rates["huggingface"]
    print(json.dumps({"ratio_prefill": round(a[0] / b[0], 2), "ratio_decode": round(a[1] / b[1], 2)}))


if __name__ == "__main__":
    main()
