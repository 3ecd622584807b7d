#include "real/cuda/machine.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "real/cuda/kernel_image.h"

namespace rehearse {
namespace {

// Finds NVML if there is one; runs do not need it.
const Nvml* FindNvml() {
  static const std::unique_ptr<Nvml> nvml = []() -> std::unique_ptr<Nvml> {
    try {
      auto found = std::make_unique<Nvml>();
      found->Initialize();
      return found;
    } catch (const Error&) {
      return nullptr;
    }
  }();
  return nvml.get();
}

void ReadByNvml(const Nvml& nvml, GpuRecord* record) {
  NvmlDevice device = nullptr;
  if (nvml.DeviceGetHandleByPciBusId.Status(record->pci_bus.c_str(), &device) != 0) return;
  std::array<char, 96> text{};
  if (nvml.DeviceGetName.Status(device, text.data(), text.size()) == 0) record->name = text.data();
  if (nvml.DeviceGetUuid.Status(device, text.data(), text.size()) == 0) record->uuid = text.data();
  unsigned milliwatts = 0;
  if (nvml.DeviceGetPowerLimit.Status(device, &milliwatts) == 0) {
    record->power_limit_watts = milliwatts / 1e3;
  }
  if (nvml.DeviceGetPower.Status(device, &milliwatts) == 0) record->power_watts = milliwatts / 1e3;
  // What a device does not say stays 0.
  nvml.DeviceGetClock.Status(device, NvmlClock::kMultiprocessor, &record->clock_mhz);
  nvml.DeviceGetClock.Status(device, NvmlClock::kMemory, &record->memory_clock_mhz);
  nvml.DeviceGetMaximumClock.Status(device, NvmlClock::kMultiprocessor, &record->maximum_clock_mhz);
  constexpr int kGpuSensor = 0;
  nvml.DeviceGetTemperature.Status(device, kGpuSensor, &record->temperature_celsius);
}

}  // namespace

void RequireGpus(const GpuLibraries& gpu, int devices) {
  int driver = 0;
  int runtime = 0;
  gpu.cuda.DriverGetVersion(&driver);
  gpu.cuda.RuntimeGetVersion(&runtime);
  if (driver == 0) {
    throw Error("no NVIDIA driver was found (libcuda.so.1), which is needed for GPU runs");
  }
  if (driver / 1000 < runtime / 1000) {
    throw Error(
        fmt::format("the NVIDIA driver knows CUDA {}, which is too old for the runtime's {} ({})",
                    CudaVersionText(driver), CudaVersionText(runtime), gpu.cuda.library.path()));
  }
  int found = 0;
  gpu.cuda.GetDeviceCount(&found);
  if (found < devices) {
    throw Error(fmt::format("found {} GPU{}, expected at least {}; see CUDA_VISIBLE_DEVICES", found,
                            found == 1 ? "" : "s", devices));
  }
  KernelImage();  // throws if there is none
}

GpuRecord ReadGpu(const GpuLibraries& gpu, int device) {
  GpuRecord record;
  gpu.cuda.SetDevice(device);
  std::array<char, 32> bus{};
  gpu.cuda.DeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device);
  record.pci_bus = bus.data();
  gpu.cuda.DeviceGetAttribute(&record.multiprocessors, DeviceAttribute::kMultiprocessors, device);
  gpu.cuda.DeviceGetAttribute(&record.compute_major, DeviceAttribute::kComputeMajor, device);
  gpu.cuda.DeviceGetAttribute(&record.compute_minor, DeviceAttribute::kComputeMinor, device);
  size_t free = 0;
  size_t total = 0;
  gpu.cuda.MemGetInfo(&free, &total);
  record.memory_bytes = total;
  if (const Nvml* nvml = FindNvml()) ReadByNvml(*nvml, &record);
  return record;
}

GpuMachine ReadGpuMachine(const GpuLibraries& gpu) {
  GpuMachine machine;
  if (const Nvml* nvml = FindNvml()) {
    std::array<char, 80> text{};
    if (nvml->SystemGetDriverVersion.Status(text.data(), text.size()) == 0) {
      machine.driver = text.data();
    }
  }
  int version = 0;
  gpu.cuda.DriverGetVersion(&version);
  machine.driver_cuda = CudaVersionText(version);
  gpu.cuda.RuntimeGetVersion(&version);
  machine.runtime = CudaVersionText(version);
  machine.cublas = BlasVersionText(gpu.blas);
  machine.libraries = {gpu.cuda.library.path(), gpu.blas.library.path()};
  if (gpu.nccl) {
    gpu.nccl->GetVersion(&version);
    machine.nccl = NcclVersionText(version);
    machine.libraries.push_back(gpu.nccl->library.path());
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const size_t equals = text.find('=');
    if (text.rfind("NCCL_", 0) != 0 && text.rfind("CUDA_", 0) != 0) continue;
    machine.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(machine.environment.begin(), machine.environment.end());
  return machine;
}

std::string DescribeGpu(const GpuLibraries& gpu, int device) {
  const GpuRecord record = ReadGpu(gpu, device);
  const GpuMachine machine = ReadGpuMachine(gpu);
  return fmt::format("{} ({} multiprocessors, sm_{}{}), CUDA {}, cuBLAS {}, NCCL {}",
                     record.name.empty() ? "NVIDIA GPU" : record.name, record.multiprocessors,
                     record.compute_major, record.compute_minor, machine.runtime, machine.cublas,
                     machine.nccl.empty() ? "none" : machine.nccl);
}

nlohmann::ordered_json ToJson(const GpuRecord& record) {
  return {{"name", record.name},
          {"uuid", record.uuid},
          {"pci_bus", record.pci_bus},
          {"multiprocessors", record.multiprocessors},
          {"compute_capability", fmt::format("{}.{}", record.compute_major, record.compute_minor)},
          {"memory_bytes", record.memory_bytes},
          {"clock_mhz", record.clock_mhz},
          {"maximum_clock_mhz", record.maximum_clock_mhz},
          {"memory_clock_mhz", record.memory_clock_mhz},
          {"power_watts", record.power_watts},
          {"power_limit_watts", record.power_limit_watts},
          {"temperature_celsius", record.temperature_celsius}};
}

nlohmann::ordered_json ToJson(const GpuMachine& machine) {
  nlohmann::ordered_json environment = nlohmann::ordered_json::object();
  for (const auto& [name, value] : machine.environment) environment[name] = value;
  return {{"driver", machine.driver},  {"driver_cuda", machine.driver_cuda},
          {"cuda", machine.runtime},   {"cublas", machine.cublas},
          {"nccl", machine.nccl},      {"libraries", machine.libraries},
          {"environment", environment}};
}

}  // namespace rehearse
