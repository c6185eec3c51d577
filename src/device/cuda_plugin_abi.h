// What the program and the CUDA plugin agree on. The plugin (samebits_cuda.so) exports one function,
// samebits_cuda_plugin; everything else is reached through the table it returns. Functions return nullptr, or one
// sentence that stays valid until the next call on the same thread; after an error no CUDA error state is left behind.
#pragma once

#include <cstdint>

namespace samebits {

inline constexpr uint32_t kCudaPluginAbi = 1;

// One kernel. `run` takes the op's Args (or its Cuda...Args where the contract's hold host containers, see <op>_cuda.h)
// with device pointers, already checked, and only enqueues work on the stream.
struct CudaKernel {
  const char* op;        // "topk"
  const char* id;        // unique: "topk/rows+stream"
  const char* contract;  // "portable-1" | "hopper-1"
  uint64_t args_size;    // sizeof of what run takes
  const char* (*run)(const void* args, void* stream);
  const CudaKernel* next;
};

struct CudaDeviceInfo {
  char name[128];
  int major, minor, sm_count;
  int runtime_version, driver_version;
  uint64_t memory_bytes, l2_bytes;
};

struct CudaPluginTable {
  uint32_t abi;
  uint32_t kernel_size;  // sizeof(CudaKernel)
  const CudaKernel* kernels;
  const char* (*open)(int device, CudaDeviceInfo* info);  // selects the device for the calling thread
  const char* (*alloc)(uint64_t bytes, void** out);
  void (*free)(void* memory);
  const char* (*copy_in)(void* to, const void* from_host, uint64_t bytes);
  const char* (*copy_out)(void* to_host, const void* from, uint64_t bytes);
  const char* (*fill)(void* to, int byte, uint64_t bytes, void* stream);
  const char* (*new_stream)(void** stream);
  void (*free_stream)(void* stream);
  const char* (*sync)(void* stream);  // nullptr: the whole device
  // Records `record` into a graph `repeat` times on `stream`, replays it `replays` times and gives the median, least and
  // greatest microseconds of one `record`. record(user, i) enqueues the i-th call and returns nullptr or an error.
  const char* (*time_graph)(const char* (*record)(void* user, int i), void* user, void* stream, int repeat, int replays,
                            float* median_min_max_us);
};

using CudaPluginEntry = const CudaPluginTable* (*)();
inline constexpr char kCudaPluginSymbol[] = "samebits_cuda_plugin";

}  // namespace samebits
