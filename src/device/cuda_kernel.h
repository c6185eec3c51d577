// For .cu files of the plugin: how a kernel is entered into the plugin's list, and how its errors become sentences.
#pragma once

#include <cuda_runtime.h>

#include "device/cuda_plugin_abi.h"

namespace samebits {

// nullptr for success, else "where: what CUDA said", kept per thread. Clears the error state.
const char* CudaSentence(cudaError_t error, const char* where);

// Links the kernel into the list; used through SB_CUDA_KERNEL alone.
struct CudaRegistration {
  explicit CudaRegistration(CudaKernel* kernel);
};

// At the end of a .cu file, once per kernel; RUN is const char* RUN(const ARGS&, cudaStream_t), which returns nullptr or
// a sentence. A new file needs no other change than this line.
#define SB_CUDA_KERNEL(NAME, OP, ID, CONTRACT, ARGS, RUN)                                 \
  static const char* NAME##_entry(const void* args, void* stream) {                       \
    return RUN(*static_cast<const ARGS*>(args), static_cast<cudaStream_t>(stream));       \
  }                                                                                       \
  static CudaKernel NAME##_kernel{OP, ID, CONTRACT, sizeof(ARGS), NAME##_entry, nullptr}; \
  static CudaRegistration NAME##_registration(&NAME##_kernel)

}  // namespace samebits
