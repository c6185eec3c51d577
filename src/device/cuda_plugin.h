// Loads the CUDA plugin. Absent plugin, driver or device, or one the plugin has no code for, is a Status, never a crash.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "device/cuda_plugin_abi.h"

namespace samebits {

class CudaPlugin {
 public:
  // path: of samebits_cuda.so. Opens the device for the calling thread; call Select on every other thread that uses it.
  static Result<CudaPlugin> Load(const std::string& path, int device = 0);

  const CudaDeviceInfo& device() const { return info_; }
  const CudaPluginTable& table() const { return *table_; }
  Status Select() const;
  // All kernels of an op, or the one with this id; id nullptr: the first of the contract.
  std::vector<const CudaKernel*> KernelsOf(const std::string& op) const;
  Result<const CudaKernel*> Find(const std::string& id) const;
  // Enqueues one call. Args must be the type the kernel takes.
  template <class Args>
  Status Run(const CudaKernel& kernel, const Args& args, void* stream = nullptr) const {
    SB_CHECK(kernel.args_size == sizeof(Args), std::string(kernel.id) + " takes another Args type");
    return FromPlugin(kernel.run(&args, stream));
  }
  static Status FromPlugin(const char* error) { return error ? Error(error) : Ok(); }

 private:
  const CudaPluginTable* table_ = nullptr;  // lives as long as the process: the plugin is never unloaded
  CudaDeviceInfo info_{};
  int device_ = 0;
};

// Device memory that frees itself.
class CudaBuffer {
 public:
  CudaBuffer() = default;
  static Result<CudaBuffer> Make(const CudaPlugin& plugin, uint64_t bytes);
  CudaBuffer(CudaBuffer&& other) noexcept { *this = std::move(other); }
  CudaBuffer& operator=(CudaBuffer&& other) noexcept;
  ~CudaBuffer();
  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const CudaPluginTable* table_ = nullptr;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace samebits
