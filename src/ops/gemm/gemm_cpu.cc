// CPU backend: widens bf16 activations once, tiles five rows or more, then hands panels of 16 outputs to the threads.

#include <algorithm>
#include <memory>

#include "ops/gemm/gemm.h"
#include "ops/gemm/gemm_simd.h"
#include "ops/op_dispatch.h"

namespace samebits {
namespace {

// An odd number of cache lines: rows a multiple of 4 KiB apart (K = 7168) would all fall into the same few L1 sets.
int64_t WidenedStride(int64_t cols) { return (((cols + 15) / 16) | 1) * 16; }

bool Tiled(const GemmArgs& args) { return args.a.dtype != DType::kF8E4M3 && args.a.rows >= kGemmTiledRows; }
// Floats of scratch that the activations need.
int64_t ScratchSize(const GemmArgs& args) {
  if (Tiled(args)) return (args.a.rows + kGemmTile - 1) / kGemmTile * kGemmTile * args.a.cols;
  return args.a.dtype == DType::kBF16 ? args.a.rows * WidenedStride(args.a.cols) : 0;
}

GemmTask TaskOf(const GemmArgs& args, const float* scratch) {
  GemmTask t;
  t.m = args.a.rows, t.n = args.b->n(), t.k = args.b->k();
  if (args.a.dtype == DType::kF8E4M3) {
    t.a8 = static_cast<const uint8_t*>(args.a.data), t.a8_stride = args.a.stride;
    t.a_scale = args.a_scale.data, t.a_scale_stride = args.a_scale.stride;
    t.b_scale = args.b->scales();
  } else if (Tiled(args)) {
    t.a = scratch;
  } else if (args.a.dtype == DType::kF32) {
    t.a = static_cast<const float*>(args.a.data), t.a_stride = args.a.stride;
  } else {
    t.a = scratch, t.a_stride = WidenedStride(args.a.cols);
  }
  t.b = args.b->data();
  t.kind = args.b->dtype() == DType::kBF16  ? GemmWeightKind::kBF16
           : args.b->dtype() == DType::kF32 ? GemmWeightKind::kF32
                                            : GemmWeightKind::kE4M3;
  t.bias = args.bias;
  t.out = args.out.data, t.out_bf16 = args.out.dtype == DType::kBF16, t.out_stride = args.out.stride;
  return t;
}

// Panels are handed out two at a time, the width of the widest tile.
constexpr int64_t kGroup = 2;
constexpr int64_t kMinWork = 1 << 16;  // multiply-adds below which a second thread costs more than it brings

void RunBatch(const CpuContext& context, std::span<const GemmArgs> batch) {
  const auto panels_of = SB_ISA_TABLE(GemmPanels).For(context);
  const auto widen_row = SB_ISA_TABLE(WidenBF16).For(context);
  const auto tile_rows = SB_ISA_TABLE(TileRows).For(context);
  struct Item {
    GemmTask task;
    int64_t first = 0, groups = 0, cost = 0;  // `first`: work before this item
  };
  std::vector<Item> items;
  items.reserve(batch.size());
  int64_t scratch_size = 0;
  for (const GemmArgs& args : batch) scratch_size += ScratchSize(args);
  const std::unique_ptr<float[]> scratch(new float[static_cast<size_t>(scratch_size)]);
  int64_t at = 0, work = 0;
  for (const GemmArgs& args : batch) {
    if (args.a.rows == 0 || args.b->n() == 0) continue;
    float* const a32 = scratch.get() + at;
    at += ScratchSize(args);
    const int64_t rows = args.a.rows, cols = args.a.cols, min_rows = kMinWork / std::max<int64_t>(1, cols);
    if (Tiled(args)) {
      const int64_t size = DTypeBits(args.a.dtype) / 8;
      auto tile = [&](int64_t begin, int64_t end) {
        for (int64_t r = begin * kGemmTile; r < std::min(rows, end * kGemmTile); r += kGemmTile)
          tile_rows(static_cast<const uint8_t*>(args.a.data) + r * args.a.stride * size, args.a.dtype == DType::kBF16,
                    args.a.stride, std::min(kGemmTile, rows - r), cols, a32 + r * cols);
      };
      context.pool->Run((rows + kGemmTile - 1) / kGemmTile, std::max<int64_t>(1, min_rows / kGemmTile), tile);
    } else if (args.a.dtype == DType::kBF16) {
      const View<const BF16> a = args.a.As<BF16>();
      const int64_t stride = WidenedStride(cols);
      auto widen = [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          widen_row(reinterpret_cast<const uint16_t*>(a.Row(r)), a32 + r * stride, cols);
      };
      context.pool->Run(rows, std::max<int64_t>(1, min_rows), widen);
    }
    Item item;
    item.task = TaskOf(args, a32);
    item.groups = ((item.task.n + kPackLanes - 1) / kPackLanes + kGroup - 1) / kGroup;
    item.cost = std::max<int64_t>(1, item.task.m * item.task.k * kGroup * kPackLanes);
    item.first = work;
    work += item.groups * item.cost;
    items.push_back(item);
  }
  context.pool->Run(work, kMinWork, [&](int64_t begin, int64_t end) {
    auto item =
        std::upper_bound(items.begin(), items.end(), begin, [](int64_t w, const Item& i) { return w < i.first; }) - 1;
    for (; item != items.end() && item->first < end; ++item) {
      // A group belongs to the piece that holds its first unit of work.
      const int64_t lo = std::max<int64_t>(0, (begin - item->first + item->cost - 1) / item->cost);
      const int64_t hi = std::min(item->groups, (end - item->first + item->cost - 1) / item->cost);
      const int64_t panels = (item->task.n + kPackLanes - 1) / kPackLanes;
      if (lo < hi) panels_of(item->task, lo * kGroup, std::min(panels, hi * kGroup));
    }
  });
}

void GemmCpu(const CpuContext& context, const GemmArgs& args) { RunBatch(context, std::span(&args, 1)); }
void GemmReference(const CpuContext&, const GemmArgs& args) { GemmRef(args); }

constexpr OpBackend<GemmArgs> kBackends[] = {{"ref", GemmReference}, {"cpu", GemmCpu}};

}  // namespace

std::span<const OpBackend<GemmArgs>> GemmBackends() { return kBackends; }

Status Gemm(const CpuContext& context, const GemmArgs& args) {
  SB_RETURN_IF_ERROR(CheckGemm(args));
  GemmCpu(context, args);
  return Ok();
}

Status GemmBatch(const CpuContext& context, std::span<const GemmArgs> batch) {
  for (const GemmArgs& args : batch) SB_RETURN_IF_ERROR(CheckGemm(args));
  RunBatch(context, batch);
  return Ok();
}

}  // namespace samebits
