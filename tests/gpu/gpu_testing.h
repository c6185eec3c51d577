// What the GPU test programs share: device copies, byte comparison, counting. No test framework: GPU machines lack it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device/cuda_plugin.h"

namespace samebits {

class GpuTest {
 public:
  // argv[1]: path of the plugin, default samebits_cuda.so beside the program.
  GpuTest(int argc, char** argv) {
    std::string path = argc > 1 ? argv[1] : std::string(argv[0]);
    if (argc <= 1) path = path.substr(0, path.find_last_of('/') + 1) + "samebits_cuda.so";
    Result<CudaPlugin> loaded = CudaPlugin::Load(path);
    if (!loaded.ok()) {
      std::printf("FAILED: %s\n", loaded.status().text().c_str());
      std::exit(2);
    }
    plugin = std::move(*loaded);
    const CudaDeviceInfo& d = plugin.device();
    std::printf("device %s, sm_%d%d, %d SMs, driver %d, runtime %d\n", d.name, d.major, d.minor, d.sm_count,
                d.driver_version, d.runtime_version);
  }
  void Check(const Status& status) {
    if (status.ok()) return;
    std::printf("FAILED: %s\n", status.text().c_str());
    std::exit(1);
  }
  // Device copy of host data, freed with the test.
  template <class T>
  T* Device(const std::vector<T>& host) {
    if (host.empty()) return nullptr;
    T* p = static_cast<T*>(Allocate(host.size() * sizeof(T)));
    Check(CudaPlugin::FromPlugin(plugin.table().copy_in(p, host.data(), host.size() * sizeof(T))));
    return p;
  }
  template <class T>
  T* Device(int64_t count) {
    return static_cast<T*>(Allocate(static_cast<size_t>(count) * sizeof(T)));
  }
  template <class T>
  std::vector<T> Host(const T* device, int64_t count) {
    std::vector<T> v(static_cast<size_t>(count));
    if (count) Check(CudaPlugin::FromPlugin(plugin.table().copy_out(v.data(), device, v.size() * sizeof(T))));
    return v;
  }
  void Poison(void* device, uint64_t bytes) {
    Check(CudaPlugin::FromPlugin(plugin.table().fill(device, 0xff, bytes, nullptr)));
  }
  void FreeAll() { buffers_.clear(); }
  const CudaKernel& Kernel(const std::string& id) {
    Result<const CudaKernel*> found = plugin.Find(id);
    Check(found.ok() ? Ok() : found.status());
    return **found;
  }
  template <class Args>
  void Run(const CudaKernel& kernel, const Args& args) {
    Check(plugin.Run(kernel, args));
    Check(CudaPlugin::FromPlugin(plugin.table().sync(nullptr)));
  }
  template <class T>
  bool Same(const std::string& what, const std::vector<T>& got, const std::vector<T>& want) {
    ++checks;
    if (got.size() == want.size() && std::memcmp(got.data(), want.data(), got.size() * sizeof(T)) == 0) return true;
    if (failures++ < 20) {
      size_t i = 0, differ = 0;
      for (size_t j = got.size(); j-- > 0;)
        if (std::memcmp(&got[j], &want[j], sizeof(T)) != 0) i = j, ++differ;
      uint64_t a = 0, b = 0;
      std::memcpy(&a, &got[i], sizeof(T)), std::memcpy(&b, &want[i], sizeof(T));
      std::printf("DIFFERS %s: %zu of %zu, first at %zu: got %llx, want %llx\n", what.c_str(), differ, got.size(), i,
                  static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
    }
    return false;
  }
  void Expect(bool ok, const std::string& what) {
    ++checks;
    if (!ok && failures++ < 20) std::printf("FAILED %s\n", what.c_str());
  }
  int Finish(const char* name) {
    std::printf("%-28s %8lld checks, %lld failures: %s\n", name, static_cast<long long>(checks),
                static_cast<long long>(failures), failures ? "FAILED" : "same bits");
    return failures ? 1 : 0;
  }

  CudaPlugin plugin;
  int64_t checks = 0, failures = 0;

 private:
  void* Allocate(uint64_t bytes) {
    Result<CudaBuffer> buffer = CudaBuffer::Make(plugin, bytes);
    Check(buffer.ok() ? Ok() : buffer.status());
    buffers_.push_back(std::move(*buffer));
    return buffers_.back().data();
  }
  std::vector<CudaBuffer> buffers_;
};

}  // namespace samebits
