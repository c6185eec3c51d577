#!/usr/bin/env python3
"""hopper-1's bf16 GEMM against torch.mm (cuBLAS), in one process, on the same data, in CUDA graphs.

    bench/gpu/gemm_bench.py build/gpu/samebits_cuda.so [--sweep] [--fp32] [--json FILE]

Fresh random inputs, several input sets in turn so that L2 does not help more than it would in use. Microseconds are the
median over replays of one call inside a graph of many; ours and torch alternate. --sweep also times every tuning entry."""
import argparse
import ctypes as C
import json
import math
import sys

import torch

SHAPES = [("router", 7168, 256), ("kv_a", 7168, 576), ("q_a", 7168, 1536), ("q_b", 1536, 24576), ("o", 16384, 7168),
          ("gate_up", 7168, 4096), ("down", 2048, 7168), ("lm_head", 7168, 129280)]
ROWS = [1, 16, 128, 1024, 4096]
TUNINGS = 51
BF16, F32 = 14, 17


class Mat(C.Structure):
    _fields_ = [("data", C.c_void_p), ("dtype", C.c_uint8), ("rows", C.c_int64), ("cols", C.c_int64), ("stride", C.c_int64)]


class HopperGemmArgs(C.Structure):
    _fields_ = [("a", Mat), ("b", Mat), ("bias", C.c_void_p), ("out", Mat), ("tuning", C.c_int)]


class Kernel(C.Structure):
    pass


RUN = C.CFUNCTYPE(C.c_char_p, C.c_void_p, C.c_void_p)
Kernel._fields_ = [("op", C.c_char_p), ("id", C.c_char_p), ("contract", C.c_char_p), ("args_size", C.c_uint64), ("run", RUN),
                   ("next", C.POINTER(Kernel))]


class Table(C.Structure):
    _fields_ = [("abi", C.c_uint32), ("kernel_size", C.c_uint32), ("kernels", C.POINTER(Kernel))]


def find_kernel(path, wanted):
    library = C.CDLL(path)
    library.samebits_cuda_plugin.restype = C.POINTER(Table)
    node = library.samebits_cuda_plugin().contents.kernels
    while node:
        if node.contents.id == wanted:
            assert node.contents.args_size == C.sizeof(HopperGemmArgs)
            return node.contents.run
        node = node.contents.next
    sys.exit(f"{path} has no kernel {wanted}")


def mat(x):
    return Mat(x.data_ptr(), BF16 if x.dtype == torch.bfloat16 else F32, x.shape[0], x.shape[1], x.stride(0))


class Graph:
    def __init__(self, call, repeat):
        self.repeat = repeat
        call(0)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(repeat):
                call(i)
        self.graph.replay()

    def us(self):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / self.repeat


def median(graphs, rounds):
    times = [[] for _ in graphs]
    for _ in range(rounds):
        for mine, graph in zip(times, graphs):
            mine.append(graph.us())
    return [sorted(t)[len(t) // 2] for t in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plugin")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--fp32", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    run = find_kernel(options.plugin, b"gemm/wgmma")
    out_type = torch.float32 if options.fp32 else torch.bfloat16
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}, out {out_type}")
    print("| shape | M | floor us | ours us | torch us | torch / ours | ours: share of floor | error |")
    lines = []
    for name, k, n in SHAPES:
        generator = torch.Generator(device="cuda").manual_seed(k + n)
        sets = max(1, min(64, math.ceil((160 << 20) / (2 * n * k))))
        weights = [torch.randn(n, k, device="cuda", generator=generator).to(torch.bfloat16) for _ in range(sets)]
        for m in ROWS:
            activations = [torch.randn(m, k, device="cuda", generator=generator).to(torch.bfloat16) for _ in range(min(sets, 8))]
            out = torch.full((m, n), float("nan"), device="cuda", dtype=out_type)

            def ours(i, tuning=-1):
                args = HopperGemmArgs(mat(activations[i % len(activations)]), mat(weights[i % sets]), None, mat(out), tuning)
                error = run(C.byref(args), torch.cuda.current_stream().cuda_stream)
                if error:
                    raise RuntimeError(error.decode())

            def theirs(i):
                a, w = activations[i % len(activations)], weights[i % sets]
                if options.fp32:
                    result[0] = torch.mm(a, w.T, out_dtype=torch.float32)
                else:
                    torch.mm(a, w.T, out=result[0])

            result = [torch.empty_like(out)]
            ours(0)
            theirs(0)
            peer_out = result[0]
            error = float((out.float() - peer_out.float()).norm() / peer_out.float().norm())
            floor = max((n * k * 2 + m * k * 2 + m * n * out.element_size()) / 4.3e6, 2.0 * m * n * k / 790e6)
            repeat = max(sets if sets > 1 else 2, min(64, int(2000 / (floor + 5))))
            mine, peer = median([Graph(ours, repeat), Graph(theirs, repeat)], 15 if floor < 2000 else 7)
            line = {"op": "gemm", "shape": name, "m": m, "n": n, "k": k, "out": str(out_type), "us": mine, "torch_us": peer,
                    "floor_us": floor, "ratio": peer / mine, "error": error}
            if options.sweep:
                found = {}
                for tuning in range(TUNINGS):
                    if tuning in range(5, 10) and m > 128 or tuning in range(10, 15) and m > 256:
                        continue
                    if (tuning < 5 or tuning > 39) and m < 128 or tuning > 44 and m > 1024:
                        continue
                    if tuning in (38, 39) and m > 256 or tuning in range(15, 19) and m > 256:
                        continue
                    try:
                        found[tuning] = round(median([Graph(lambda i: ours(i, tuning), min(repeat, 24))], 3)[0], 1)
                    except RuntimeError:
                        torch.cuda.synchronize()
                line["tunings"] = dict(sorted(found.items(), key=lambda x: x[1]))
            lines.append(line)
            best = list(line.get("tunings", {}).items())[:5]
            print(f"| {name} | {m} | {floor:.1f} | {mine:.1f} | {peer:.1f} | {peer / mine:.2f} | {floor / mine:.2f} | {error:.1e} |"
                  f" {best if best else ''}", flush=True)
        del weights, activations, out, peer_out
    ratios = [line["ratio"] for line in lines]
    print(f"geometric mean torch / ours {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, least {min(ratios):.2f}, "
          f"least at M >= 1024 {min(line['ratio'] for line in lines if line['m'] >= 1024):.2f}")
    if options.json:
        with open(options.json, "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    return 0 if all(line["error"] < 0.01 for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
