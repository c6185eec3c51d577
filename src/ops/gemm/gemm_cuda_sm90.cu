// hopper-1's GEMM (gemm_hopper.h) for sm_90a. One warp feeds a ring of K steps through the copy engine; one or two
// warpgroups multiply; clusters share the Q operand (multicast) or the segments of K (split, added in the first
// rank's order through distributed shared memory). Blocks stay and walk over tiles unless K is split.

#include <atomic>

#include "device/cuda_kernel.h"
#include "ops/gemm/gemm_hopper.h"
#include "ops/gemm/hopper_ptx.cuh"

namespace samebits {
namespace {

using namespace hopper;

constexpr int kStepsPerSegment = static_cast<int>(kHopperGemmSegment / kHopperStepK);

struct Params {
  CUtensorMap p, q;
  int p_rows, q_rows, k_steps, p_tiles, q_tiles, multicast, split, segments_per_rank, stages;
  void* out;
  int64_t out_stride;
  const float* bias;
  bool out_bf16, wide_stores;
};

// Tiles that run at the same time should read few rows of both operands: bands of P tiles, P first within a band.
struct Tile {
  int p, q;
};
__device__ __forceinline__ Tile TileOf(const Params& g, int cluster_tile) {
  const int groups = g.p_tiles / g.multicast, band_width = 16 / g.multicast;
  const int band = cluster_tile / (band_width * g.q_tiles), first = band * band_width;
  const int width = min(band_width, groups - first), i = cluster_tile - band * band_width * g.q_tiles;
  return {first + i % width, i / width};
}

__device__ __forceinline__ uint32_t Pack(float a, float b) {
  return StoreOut<BF16>(a).bits | static_cast<uint32_t>(StoreOut<BF16>(b).bits) << 16;
}

// After: thread t of each group of 4 holds x[t] of the group's threads 0 .. 3.
__device__ __forceinline__ void Transpose4(uint32_t (&x)[4], int t) {
  const bool odd = t & 1, high = t & 2;
  const uint32_t a = __shfl_xor_sync(~0u, odd ? x[0] : x[1], 1), b = __shfl_xor_sync(~0u, odd ? x[2] : x[3], 1);
  if (odd)
    x[0] = a, x[2] = b;
  else
    x[1] = a, x[3] = b;
  const uint32_t c = __shfl_xor_sync(~0u, high ? x[0] : x[2], 2), d = __shfl_xor_sync(~0u, high ? x[1] : x[3], 2);
  if (high)
    x[0] = c, x[1] = d;
  else
    x[2] = c, x[3] = d;
}

// P is the tokens: a thread's registers hold pairs of neighbouring outputs of two rows.
template <int kN>
__device__ __forceinline__ void StoreRows(const Params& g, float (&total)[kN / 2], int row0, int col0) {
  const int t = threadIdx.x % 4;
  if (g.bias)
#pragma unroll
    for (int j = 0; j < kN / 8; ++j)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int col = col0 + 8 * j + 2 * t + c;
        const float bias = col < g.q_rows ? g.bias[col] : 0.0f;
        total[4 * j + c] = Add(total[4 * j + c], bias), total[4 * j + 2 + c] = Add(total[4 * j + 2 + c], bias);
      }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = row0 + 8 * h;
    const bool in = row < g.p_rows;
    if (g.out_bf16 && g.wide_stores) {
      BF16* const out = static_cast<BF16*>(g.out) + row * g.out_stride;
#pragma unroll
      for (int j = 0; j < kN / 8; j += 4) {
        uint32_t x[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) x[i] = Pack(total[4 * (j + i) + 2 * h], total[4 * (j + i) + 2 * h + 1]);
        Transpose4(x, t);
        const int col = col0 + 8 * (j + t);
        if (in && col < g.q_rows) *reinterpret_cast<uint4*>(out + col) = make_uint4(x[0], x[1], x[2], x[3]);
      }
    } else if (g.wide_stores) {
      float* const out = static_cast<float*>(g.out) + row * g.out_stride;
#pragma unroll
      for (int j = 0; j < kN / 8; ++j) {
        const int col = col0 + 8 * j + 2 * t;
        if (in && col < g.q_rows)
          *reinterpret_cast<float2*>(out + col) = make_float2(total[4 * j + 2 * h], total[4 * j + 2 * h + 1]);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kN / 8; ++j)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int col = col0 + 8 * j + 2 * t + c;
          if (!in || col >= g.q_rows) continue;
          if (g.out_bf16)
            static_cast<BF16*>(g.out)[row * g.out_stride + col] = StoreOut<BF16>(total[4 * j + 2 * h + c]);
          else
            static_cast<float*>(g.out)[row * g.out_stride + col] = total[4 * j + 2 * h + c];
        }
    }
  }
}

// P is the weights: 4 neighbouring outputs of one token.
__device__ __forceinline__ void StoreFour(const Params& g, float4 v, int token, int col) {
  if (token >= g.q_rows || col >= g.p_rows) return;
  float x[4] = {v.x, v.y, v.z, v.w};
  if (g.bias)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (col + i < g.p_rows) x[i] = Add(x[i], g.bias[col + i]);
  const int64_t at = token * g.out_stride + col;
  if (g.wide_stores && g.out_bf16) {
    *reinterpret_cast<uint2*>(static_cast<BF16*>(g.out) + at) = make_uint2(Pack(x[0], x[1]), Pack(x[2], x[3]));
  } else if (g.wide_stores) {
    *reinterpret_cast<float4*>(static_cast<float*>(g.out) + at) = make_float4(x[0], x[1], x[2], x[3]);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (col + i >= g.p_rows) continue;
      if (g.out_bf16)
        static_cast<BF16*>(g.out)[at + i] = StoreOut<BF16>(x[i]);
      else
        static_cast<float*>(g.out)[at + i] = x[i];
    }
  }
}

// Two warpgroups of workers take registers from the feeding warp's group (a third, mostly idle, that exists for this):
// 64 x 192 sums and as many totals need 192 of a thread's 232.
constexpr int ThreadsOf(int warpgroups) { return warpgroups == 2 ? 384 : 160; }

template <int kWarpgroups, int kN, bool kSwap>
__global__ __launch_bounds__(ThreadsOf(kWarpgroups),
                             kWarpgroups == 2 ? 1 : 2) void GemmKernel(const __grid_constant__ Params g) {
  constexpr int kRows = 64 * kWarpgroups, kWorkers = 128 * kWarpgroups, kRegisters = kN / 2;
  constexpr uint32_t kPBytes = kRows * 128, kStageBytes = kPBytes + kN * 128;
  constexpr int kSlotRow = kRows + 4, kSlotFloats = kSlotRow * kN;  // + 4: the 4 columns of a quad fall on other banks
  extern __shared__ uint8_t raw[];
  __shared__ alignas(8) uint64_t full_[kHopperMaxStages], empty_[kHopperMaxStages];
  const uint32_t ring = (SharedAddress(raw) + 1023) & ~1023u, full = SharedAddress(full_),
                 empty = SharedAddress(empty_);
  const uint32_t slots_at = ring + g.stages * kStageBytes;
  float* const slots = reinterpret_cast<float*>(raw + (slots_at - SharedAddress(raw)));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int cluster_size = g.multicast * g.split, rank = static_cast<int>(ClusterRank());
  const int share = rank % g.multicast, k_rank = rank / g.multicast, rank0 = k_rank * g.multicast;
  const int tiles = g.p_tiles / g.multicast * g.q_tiles;
  const int first_tile = blockIdx.x / cluster_size, tile_step = gridDim.x / cluster_size;
  const int step_begin = min(g.k_steps, k_rank * g.segments_per_rank * kStepsPerSegment);
  const int step_end = min(g.k_steps, step_begin + g.segments_per_rank * kStepsPerSegment);

  if (threadIdx.x == 0) {
    for (int s = 0; s < g.stages; ++s) {
      BarrierInit(full + 8 * s, 1);
      BarrierInit(empty + 8 * s, 4 * kWarpgroups * g.multicast);
    }
    BarrierInitFence();
    PrefetchMap(&g.p), PrefetchMap(&g.q);
  }
  __syncthreads();
  if (cluster_size > 1) ClusterSync();
  PreviousKernelWait();
  NextKernelGo();

  int stage = 0;
  uint32_t parity = 0;
  const auto advance = [&] {
    if (++stage == g.stages) stage = 0, parity ^= 1;
  };
  if (warp >= 4 * kWarpgroups) {
    if constexpr (kWarpgroups == 2) GiveRegisters<40>();
    if (warp == 4 * kWarpgroups && lane == 0) {
      const int q_share = kN / g.multicast;
      const uint16_t mask = static_cast<uint16_t>(((1 << g.multicast) - 1) << rank0);
      for (int i = first_tile; i < tiles; i += tile_step) {
        const Tile tile = TileOf(g, i);
        const int p_row = (tile.p * g.multicast + share) * kRows, q_row = tile.q * kN + share * q_share;
        for (int step = step_begin; step < step_end; ++step) {
          BarrierWait(empty + 8 * stage, parity ^ 1);
          BarrierExpect(full + 8 * stage, kStageBytes);
          const uint32_t to = ring + stage * kStageBytes, to_q = to + kPBytes + share * q_share * 128;
          const int k = step * static_cast<int>(kHopperStepK);
          CopyBox(to, &g.p, full + 8 * stage, k, p_row);
          if (g.multicast == 1)
            CopyBox(to_q, &g.q, full + 8 * stage, k, q_row);
          else
            CopyBoxTo(to_q, &g.q, full + 8 * stage, k, q_row, mask);
          advance();
        }
      }
    }
    __syncwarp();
    if (g.split > 1) ClusterSync();
  } else {
    if constexpr (kWarpgroups == 2) TakeRegisters<232>();
    const int group = warp / 4, row_in_tile = group * 64 + warp % 4 * 16 + lane / 4;
    const auto release = [&](int s) {
      if (g.multicast == 1) {
        if (lane == 0) BarrierArrive(empty + 8 * s);
      } else if (lane < g.multicast) {
        BarrierArriveAt(empty + 8 * s, rank0 + lane);
      }
    };
    for (int i = first_tile; i < tiles; i += tile_step) {
      float sum[kRegisters], total[kRegisters];
#pragma unroll
      for (int j = 0; j < kRegisters; ++j) total[j] = 0.0f;
      float* slot = slots;
      const auto keep = [&](const float(&x)[kRegisters]) {
#pragma unroll
        for (int j = 0; j < kN / 8; ++j)
#pragma unroll
          for (int c = 0; c < 4; ++c)
            slot[(8 * j + 2 * (lane % 4) + (c & 1)) * kSlotRow + row_in_tile + 8 * (c >> 1)] = x[4 * j + c];
      };
      for (int segment = step_begin; segment < step_end; segment += kStepsPerSegment) {
        const int end = min(step_end, segment + kStepsPerSegment);
        int previous = -1;
        HoldRegisters(sum);
        for (int step = segment; step < end; ++step) {
          BarrierWait(full + 8 * stage, parity);
          const uint32_t at = ring + stage * kStageBytes;
          const uint64_t p = OperandAt(at + group * 64 * 128), q = OperandAt(at + kPBytes);
          WgmmaFence();
#pragma unroll
          for (int k = 0; k < 4; ++k) Wgmma<kN>(sum, p + 2 * k, q + 2 * k, step != segment || k != 0);
          WgmmaCommit();
          WgmmaWait<1>();
          if (previous >= 0) release(previous);
          previous = stage;
          advance();
        }
        WgmmaWait<0>();
        HoldRegisters(sum);
        release(previous);
        if (!kSwap || k_rank == 0) {
#pragma unroll
          for (int j = 0; j < kRegisters; ++j) total[j] = Add(total[j], sum[j]);
        } else {
          keep(sum);
          slot += kSlotFloats;
        }
      }
      const Tile tile = TileOf(g, i);
      const int p0 = (tile.p * g.multicast + share) * kRows, q0 = tile.q * kN;
      if constexpr (!kSwap) {
        StoreRows<kN>(g, total, p0 + row_in_tile, q0);
      } else {
        if (k_rank == 0) keep(total);
        if (g.split > 1)
          ClusterSync();
        else
          NamedSync<kWorkers>(1);
        const int segments = (g.k_steps + kStepsPerSegment - 1) / kStepsPerSegment;
        for (int e = k_rank * kWorkers + threadIdx.x; e < kRows / 4 * kN; e += g.split * kWorkers) {
          const int token = e / (kRows / 4), col = e % (kRows / 4) * 4;
          const uint32_t at = slots_at + 4 * (token * kSlotRow + col);
          float4 v = *reinterpret_cast<const float4*>(slots + token * kSlotRow + col);
          if (g.split > 1) {
            v = LoadFrom(at, share);
            for (int s = g.segments_per_rank; s < segments; ++s) {
              const float4 w = LoadFrom(at + s % g.segments_per_rank * kSlotFloats * 4,
                                        s / g.segments_per_rank * g.multicast + share);
              v = make_float4(Add(v.x, w.x), Add(v.y, w.y), Add(v.z, w.z), Add(v.w, w.w));
            }
          }
          StoreFour(g, v, q0 + token, p0 + col);
        }
        if (g.split == 1) NamedSync<kWorkers>(1);  // the slot is free for the next tile
      }
    }
  }
  __syncwarp();
  if (cluster_size > 1) ClusterSync();  // nobody leaves while others still write to or read from its shared memory
}

using Kernel = void (*)(Params);
template <int kWarpgroups, int kN, bool kSwap>
constexpr Kernel kKernel = GemmKernel<kWarpgroups, kN, kSwap>;

Kernel KernelOf(const HopperGemmTuning& t) {
  if (!t.swap)
    return t.n == 192   ? kKernel<2, 192, false>
           : t.n == 160 ? kKernel<2, 160, false>
           : t.n == 128 ? kKernel<2, 128, false>
                        : kKernel<2, 96, false>;
  if (t.warpgroups == 2)
    return t.n == 16   ? kKernel<2, 16, true>
           : t.n == 64 ? kKernel<2, 64, true>
           : t.n == 80 ? kKernel<2, 80, true>
                       : kKernel<2, 128, true>;
  return t.n == 8    ? kKernel<1, 8, true>
         : t.n == 16 ? kKernel<1, 16, true>
         : t.n == 32 ? kKernel<1, 32, true>
         : t.n == 64 ? kKernel<1, 64, true>
                     : kKernel<1, 128, true>;
}

using EncodeMap = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                               const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                               CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

EncodeMap FindEncodeMap() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result) !=
      cudaSuccess)
    cudaGetLastError();
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<EncodeMap>(found) : nullptr;
}

bool Encode(EncodeMap encode, CUtensorMap* map, const ConstMat& x, int box_rows) {
  const cuuint64_t size[] = {static_cast<cuuint64_t>(x.cols), static_cast<cuuint64_t>(x.rows)};
  const cuuint64_t stride[] = {static_cast<cuuint64_t>(x.stride) * 2};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(kHopperStepK), static_cast<cuuint32_t>(box_rows)}, one[] = {1, 1};
  return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(x.data), size, stride, box, one,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool Aligned(const void* p, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
}

// What the device says about an entry, asked once: blocks the whole chip holds at a time.
struct Residency {
  std::atomic<int> clusters{0};
  std::atomic<int64_t> smem{0};
};
Residency residency[kHopperGemmTuningCount];

const char* RunGemm(const HopperGemmArgs& a, cudaStream_t stream) {
  if (a.a.dtype != DType::kBF16 || a.b.dtype != DType::kBF16 ||
      (a.out.dtype != DType::kBF16 && a.out.dtype != DType::kF32))
    return "gemm in hopper-1: takes bf16 times bf16 to bf16 or fp32; other types have other kernels";
  const int64_t m = a.a.rows, n = a.b.rows, k = a.a.cols;
  if (a.b.cols != k || a.out.rows != m || a.out.cols != n)
    return "gemm in hopper-1: shapes do not fit; expected a [M, K], b [N, K], out [M, N]";
  if (m == 0 || n == 0) return nullptr;
  if (k < 1 || m > (1 << 30) || n > (1 << 30) || k > (1 << 30)) return "gemm in hopper-1: each size must be 1 .. 2^30";
  if (a.a.stride % 8 || a.b.stride % 8 || !Aligned(a.a.data, 16) || !Aligned(a.b.data, 16))
    return "gemm in hopper-1: a, b and their row strides must be multiples of 16 bytes; copy them to aligned memory";
  static const int sm_count = [] {
    int device = 0, count = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    return count;
  }();
  static const EncodeMap encode = FindEncodeMap();
  if (!encode) return "gemm in hopper-1: the driver has no cuTensorMapEncodeTiled; update it";
  const int64_t segments = CeilDiv(k, kHopperGemmSegment);
  const int tuning = a.tuning < 0 ? HopperGemmPick(m, n, k, segments, sm_count) : a.tuning;
  if (tuning < 0 || tuning >= kHopperGemmTuningCount) return "gemm in hopper-1: no such tuning entry";
  const HopperGemmTuning& t = kHopperGemmTunings[tuning];
  const HopperGemmLayout l = LayoutOf(t, m, n, segments, sm_count);
  if (l.stages == 0) return "gemm in hopper-1: this tuning entry does not fit the shape";

  Params g;
  const ConstMat &p = t.swap ? a.b : a.a, &q = t.swap ? a.a : a.b;
  if (!Encode(encode, &g.p, p, 64 * t.warpgroups) || !Encode(encode, &g.q, q, t.n / t.multicast))
    return "gemm in hopper-1: the driver refused a tensor map for these pointers and strides";
  g.p_rows = static_cast<int>(p.rows), g.q_rows = static_cast<int>(q.rows);
  g.k_steps = static_cast<int>(CeilDiv(k, kHopperStepK));
  g.p_tiles = static_cast<int>(l.p_tiles), g.q_tiles = static_cast<int>(l.q_tiles);
  g.multicast = t.multicast, g.split = t.split, g.segments_per_rank = l.segments_per_rank, g.stages = l.stages;
  g.out = a.out.data, g.out_stride = a.out.stride, g.bias = a.bias, g.out_bf16 = a.out.dtype == DType::kBF16;
  g.wide_stores = n % 8 == 0 && a.out.stride % 8 == 0 && Aligned(a.out.data, 16);

  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(t.multicast * t.split), 1, 1};
  cudaLaunchConfig_t config = {};
  config.blockDim = dim3(static_cast<unsigned>(ThreadsOf(t.warpgroups)));
  config.dynamicSmemBytes = static_cast<size_t>(l.smem_bytes);
  config.stream = stream, config.attrs = attributes, config.numAttrs = 1;
  config.gridDim = dim3(static_cast<unsigned>(t.multicast * t.split));
  const Kernel kernel = KernelOf(t);
  Residency& r = residency[tuning];
  int resident = r.smem.load() == l.smem_bytes ? r.clusters.load() : 0;
  if (resident == 0) {
    if (const char* error = CudaSentence(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kHopperSmem)),
            "gemm in hopper-1 (shared memory)"))
      return error;
    if (const char* error =
            CudaSentence(cudaOccupancyMaxActiveClusters(&resident, kernel, &config), "gemm in hopper-1 (occupancy)"))
      return error;
    if (resident < 1) return "gemm in hopper-1: the device cannot hold one cluster of this tuning entry";
    r.clusters = resident, r.smem = l.smem_bytes;
  }
  const int64_t tiles = l.p_tiles / t.multicast * l.q_tiles;
  const int64_t clusters = t.split == 1 && resident < tiles ? resident : tiles;
  config.gridDim = dim3(static_cast<unsigned>(clusters * t.multicast * t.split));
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  config.numAttrs = 2;
  return CudaSentence(cudaLaunchKernelEx(&config, kernel, g), "gemm in hopper-1");
}

SB_CUDA_KERNEL(gemm_hopper, "gemm", "gemm/wgmma", "hopper-1", HopperGemmArgs, RunGemm);

}  // namespace
}  // namespace samebits
