// The plugin's entry point and what it offers besides kernels: memory, streams, timing.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "device/cuda_kernel.h"

namespace samebits {
namespace {

thread_local char sentence[512];

CudaKernel*& FirstKernel() {
  static CudaKernel* first = nullptr;
  return first;
}

__global__ void ProbeKernel() {}

const char* Open(int device, CudaDeviceInfo* info) {
  int count = 0, driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (driver == 0) {
    cudaGetLastError();
    return "no NVIDIA driver is installed; install one or use --device cpu";
  }
  if (found == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    std::snprintf(sentence, sizeof(sentence),
                  "the NVIDIA driver supports CUDA %d.%d, the plugin needs %d.%d; update the driver", driver / 1000,
                  driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return sentence;
  }
  if (found != cudaSuccess || count == 0) {
    cudaGetLastError();
    return "no CUDA device is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu";
  }
  if (device < 0 || device >= count) {
    std::snprintf(sentence, sizeof(sentence), "CUDA device %d does not exist; this machine has %d", device, count);
    return sentence;
  }
  cudaDeviceProp p;
  if (const char* error = CudaSentence(cudaSetDevice(device), "cudaSetDevice")) return error;
  if (const char* error = CudaSentence(cudaGetDeviceProperties(&p, device), "cudaGetDeviceProperties")) return error;
  cudaFuncAttributes probe;
  if (cudaFuncGetAttributes(&probe, ProbeKernel) != cudaSuccess) {
    cudaGetLastError();
    std::snprintf(sentence, sizeof(sentence),
                  "the plugin has no code for %s (compute capability %d.%d); rebuild it with -DSB_CUDA_ARCHS=%d%d",
                  p.name, p.major, p.minor, p.major, p.minor);
    return sentence;
  }
  std::memset(info, 0, sizeof(*info));
  std::snprintf(info->name, sizeof(info->name), "%s", p.name);
  info->major = p.major, info->minor = p.minor, info->sm_count = p.multiProcessorCount;
  info->runtime_version = runtime, info->driver_version = driver;
  info->memory_bytes = p.totalGlobalMem, info->l2_bytes = static_cast<uint64_t>(p.l2CacheSize);
  return nullptr;
}

const char* Alloc(uint64_t bytes, void** out) {
  *out = nullptr;
  const cudaError_t error = cudaMalloc(out, bytes ? bytes : 1);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free_bytes = 0, total = 0;
    cudaMemGetInfo(&free_bytes, &total);
    std::snprintf(sentence, sizeof(sentence), "out of GPU memory: %llu bytes asked for, %zu of %zu free",
                  static_cast<unsigned long long>(bytes), free_bytes, total);
    return sentence;
  }
  return CudaSentence(error, "cudaMalloc");
}
void Free(void* memory) { CudaSentence(cudaFree(memory), "cudaFree"); }
const char* CopyIn(void* to, const void* from, uint64_t bytes) {
  return CudaSentence(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copy to the GPU");
}
const char* CopyOut(void* to, const void* from, uint64_t bytes) {
  return CudaSentence(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy from the GPU");
}
const char* Fill(void* to, int byte, uint64_t bytes, void* stream) {
  return CudaSentence(cudaMemsetAsync(to, byte, bytes, static_cast<cudaStream_t>(stream)), "fill");
}
const char* NewStream(void** stream) {
  return CudaSentence(cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream), cudaStreamNonBlocking),
                      "new stream");
}
void FreeStream(void* stream) { CudaSentence(cudaStreamDestroy(static_cast<cudaStream_t>(stream)), "free stream"); }
const char* Sync(void* stream) {
  return CudaSentence(stream ? cudaStreamSynchronize(static_cast<cudaStream_t>(stream)) : cudaDeviceSynchronize(),
                      "kernel");
}

const char* TimeGraph(const char* (*record)(void*, int), void* user, void* stream_, int repeat, int replays,
                      float* out) {
  cudaStream_t stream = static_cast<cudaStream_t>(stream_);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  const char* error = CudaSentence(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  if (error) return error;
  for (int i = 0; i < repeat && !error; ++i) error = record(user, i);
  const char* ended = CudaSentence(cudaStreamEndCapture(stream, &graph), "end capture");
  if (!error) error = ended;
  if (!error) error = CudaSentence(cudaGraphInstantiate(&exec, graph, 0), "instantiate graph");
  std::vector<float> us;
  if (!error) {
    cudaEventCreate(&begin), cudaEventCreate(&end);
    for (int r = 0; r < replays + 2 && !error; ++r) {
      cudaEventRecord(begin, stream);
      cudaGraphLaunch(exec, stream);
      cudaEventRecord(end, stream);
      error = CudaSentence(cudaStreamSynchronize(stream), "graph replay");
      float ms = 0;
      cudaEventElapsedTime(&ms, begin, end);
      if (r >= 2) us.push_back(1000.0f * ms / static_cast<float>(repeat));
    }
    cudaEventDestroy(begin), cudaEventDestroy(end);
  }
  if (exec) cudaGraphExecDestroy(exec);
  if (graph) cudaGraphDestroy(graph);
  if (error) return error;
  std::sort(us.begin(), us.end());
  out[0] = us[us.size() / 2], out[1] = us.front(), out[2] = us.back();
  return nullptr;
}

}  // namespace

const char* CudaSentence(cudaError_t error, const char* where) {
  if (error == cudaSuccess) return nullptr;
  cudaGetLastError();
  std::snprintf(sentence, sizeof(sentence), "%s: %s", where, cudaGetErrorString(error));
  return sentence;
}

CudaRegistration::CudaRegistration(CudaKernel* kernel) {
  kernel->next = FirstKernel();
  FirstKernel() = kernel;
}

}  // namespace samebits

extern "C" __attribute__((visibility("default"))) const samebits::CudaPluginTable* samebits_cuda_plugin() {
  using namespace samebits;
  static CudaPluginTable table{kCudaPluginAbi, sizeof(CudaKernel), nullptr,    Open, Alloc,    Free, CopyIn, CopyOut,
                               Fill,           NewStream,          FreeStream, Sync, TimeGraph};
  table.kernels = FirstKernel();
  return &table;
}
