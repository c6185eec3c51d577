#!/usr/bin/env python3
"""Stable top-k against torch.topk and a stable sort, in one process, on the same data, in CUDA graphs.

    bench/gpu/topk_bench.py build/gpu/samebits_cuda.so [--sweep] [--json FILE]

Fresh random scores, several input sets in turn so that L2 does not help more than it would in use, outputs poisoned.
Microseconds are the median over replays of one call inside a graph of many. --sweep also times every tuning entry."""
import argparse
import ctypes as C
import json
import sys

import torch

SHAPES = [(323, 2590, 2048), (4096, 4096, 2048), (4096, 8192, 2048), (1024, 32768, 2048), (256, 131072, 2048), (64, 131072, 2048),
          (1, 131072, 2048), (1, 8192, 2048), (4096, 16384, 512), (1, 1048576, 2048), (16, 1048576, 2048)]
TUNINGS = 32


class View(C.Structure):
    _fields_ = [("data", C.c_void_p), ("rows", C.c_int64), ("cols", C.c_int64), ("stride", C.c_int64)]


class TopkArgs(C.Structure):
    _fields_ = [("scores", View), ("row_starts", C.c_void_p), ("row_lens", C.c_void_p), ("output", C.c_int), ("indices", View),
                ("nan_counts", C.c_void_p)]


class CudaTopkArgs(C.Structure):
    _fields_ = [("topk", TopkArgs), ("slots", C.c_void_p), ("slots_stride", C.c_int64), ("page_table", C.c_void_p),
                ("page_table_stride", C.c_int64), ("request", C.c_void_p), ("page_size", C.c_int32), ("tuning", C.c_int)]


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
            assert node.contents.args_size == C.sizeof(CudaTopkArgs), (node.contents.args_size, C.sizeof(CudaTopkArgs))
            return node.contents.run
        node = node.contents.next
    sys.exit(f"{path} has no kernel {wanted}")


def graph_us(call, repeat, replays=15):
    """Median, least and greatest microseconds of call(i), i = 0 .. repeat-1, inside one graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call(0)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for i in range(repeat):
                call(i)
        times = []
        for r in range(replays + 2):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            if r >= 2:
                times.append(begin.elapsed_time(end) * 1000 / repeat)
    times.sort()
    return times[len(times) // 2], times[0], times[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plugin")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--only", help="one shape: 4096x4096")
    options = parser.parse_args()
    run = find_kernel(options.plugin, b"topk/select")
    lines = []
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    print("| rows x n, k | scores | floor us | ours us (min-max) | x floor | torch.topk us | stable sort us | torch / ours | same set as torch (rows) |")
    for rows, n, k in SHAPES:
        if options.only and options.only != f"{rows}x{n}":
            continue
        for family in ("normal", "tied"):
            sets = max(2, min(64, (192 << 20) // (rows * n * 4)))
            scores = []
            generator = torch.Generator(device="cuda").manual_seed(rows + n)
            for _ in range(sets):
                x = torch.randn(rows, n, device="cuda", generator=generator)
                scores.append(torch.round(x * 8) / 8 if family == "tied" else x)
            out = torch.full((rows, k), -7, dtype=torch.int32, device="cuda")

            def ours(i, tuning=-1):
                x = scores[i % sets]
                args = CudaTopkArgs(TopkArgs(View(x.data_ptr(), rows, n, n), None, None, 0, View(out.data_ptr(), rows, k, k), None),
                                    None, 0, None, 0, None, 64, tuning)
                error = run(C.byref(args), torch.cuda.current_stream().cuda_stream)
                if error:
                    raise RuntimeError(error.decode())

            ours(0)
            torch.cuda.synchronize()
            want = torch.sort(scores[0], dim=1, descending=True, stable=True).indices[:, :k].sort(dim=1).values
            exact = bool((want == out).all())
            theirs = torch.topk(scores[0], k, dim=1, sorted=False).indices.sort(dim=1).values
            agree = int((want == theirs).all(dim=1).sum())
            repeat = max(4, min(64, sets))
            mine = graph_us(ours, repeat)
            peer = graph_us(lambda i: torch.topk(scores[i % sets], k, dim=1, sorted=False), min(repeat, 8), 5)
            stable = graph_us(lambda i: torch.sort(scores[i % sets], dim=1, descending=True, stable=True), 2, 3) \
                if rows * n <= 1 << 25 and family == "normal" else None
            floor = (4 * n + 4 * k) * rows / 4.3e6
            line = {"op": "topk", "rows": rows, "n": n, "k": k, "scores": family, "us": mine[0], "min": mine[1], "max": mine[2],
                    "floor_us": floor, "torch_us": peer[0], "stable_sort_us": stable[0] if stable else None,
                    "exact": exact, "rows_where_torch_agrees": agree}
            if options.sweep:
                line["tunings"] = {}
                for tuning in range(TUNINGS):
                    try:
                        line["tunings"][tuning] = round(graph_us(lambda i: ours(i, tuning), repeat, 5)[0], 1)
                    except RuntimeError:
                        torch.cuda.synchronize()
            lines.append(line)
            print(f"| {rows} x {n}, {k} | {family} | {floor:.1f} | {mine[0]:.1f} ({mine[1]:.1f}-{mine[2]:.1f}) | {mine[0] / max(floor, .01):.1f} | "
                  f"{peer[0]:.1f} | {f'{stable[0]:.0f}' if stable else '-'} | {peer[0] / mine[0]:.1f} | {agree}/{rows} |"
                  f"{'' if exact else ' OURS IS WRONG'} {line.get('tunings', '')}", flush=True)
            del scores, out
    if options.json:
        with open(options.json, "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    return 0 if all(line["exact"] for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
