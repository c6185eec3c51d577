#include "device/cuda_plugin.h"

#include <dlfcn.h>

#include <cstring>

#include "base/strings.h"

namespace samebits {

Result<CudaPlugin> CudaPlugin::Load(const std::string& path, int device) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return Error(Format(
        "CUDA plugin %s cannot be loaded (%s); build it with a CUDA toolkit (cmake --preset cuda) or use --device cpu",
        path.c_str(), why ? why : "unknown error"));
  }
  CudaPluginEntry entry = nullptr;
  void* symbol = dlsym(library, kCudaPluginSymbol);
  std::memcpy(&entry, &symbol, sizeof(entry));
  if (entry == nullptr) return Error("CUDA plugin " + path + ": not a samebits plugin; rebuild it");
  CudaPlugin plugin;
  plugin.table_ = entry();
  if (plugin.table_->abi != kCudaPluginAbi || plugin.table_->kernel_size != sizeof(CudaKernel))
    return Error(Format("CUDA plugin %s: interface version %u, this program needs %u; build both from one source tree",
                        path.c_str(), plugin.table_->abi, kCudaPluginAbi));
  plugin.device_ = device;
  const char* error = plugin.table_->open(device, &plugin.info_);
  if (error) return Error(error);
  return plugin;
}

Status CudaPlugin::Select() const {
  CudaDeviceInfo info;
  return FromPlugin(table_->open(device_, &info));
}

std::vector<const CudaKernel*> CudaPlugin::KernelsOf(const std::string& op) const {
  std::vector<const CudaKernel*> found;
  for (const CudaKernel* k = table_->kernels; k; k = k->next)
    if (op == k->op) found.push_back(k);
  return found;
}

Result<const CudaKernel*> CudaPlugin::Find(const std::string& id) const {
  for (const CudaKernel* k = table_->kernels; k; k = k->next)
    if (id == k->id) return k;
  return Error("the CUDA plugin has no kernel " + id + "; build program and plugin from one source tree");
}

Result<CudaBuffer> CudaBuffer::Make(const CudaPlugin& plugin, uint64_t bytes) {
  CudaBuffer buffer;
  const char* error = plugin.table().alloc(bytes, &buffer.data_);
  if (error) return Error(error);
  buffer.table_ = &plugin.table();
  buffer.bytes_ = bytes;
  return buffer;
}

CudaBuffer& CudaBuffer::operator=(CudaBuffer&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

CudaBuffer::~CudaBuffer() {
  if (data_) table_->free(data_);
}

}  // namespace samebits
