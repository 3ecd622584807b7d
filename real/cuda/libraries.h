// The CUDA runtime, cuBLAS, NCCL and NVML as far as Rehearse calls them: signatures and constants
// of their binary interfaces, so that the backend compiles without their headers and loads them at
// run time.
//
// real/cuda/libraries_check.cc compares every line with the vendors' headers if those are
// installed. Sources: CUDA Runtime API 13.0, cuBLAS 13, NCCL 2.28, NVML 13 references. Everything
// that is called is also in CUDA 12.8 and NCCL 2.18.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "real/cuda/library.h"

namespace rehearse {

// ---- CUDA runtime -----------------------------------------------------------------------------

using CudaStream = struct CudaStreamHandle*;
using CudaEvent = struct CudaEventHandle*;
using CudaLibrary = struct CudaLibraryHandle*;  // code loaded into the devices
using CudaKernel = struct CudaKernelHandle*;
using CudaGraph = struct CudaGraphHandle*;  // work that was captured
using CudaGraphExec = struct CudaGraphExecHandle*;

struct Dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

enum class CopyKind : int { kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3 };
// The attributes of a device that Rehearse asks for.
enum class DeviceAttribute : int {
  kClockKilohertz = 13,
  kMultiprocessors = 16,
  kComputeMajor = 75,
  kComputeMinor = 76,
};

inline constexpr int kCudaNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1;  // does not wait for the default stream
inline constexpr unsigned kEventDisableTiming = 2;
// Calls that a capture does not allow fail on the capturing thread, not on those of other ranks.
enum class CaptureMode : int { kThreadLocal = 1 };

struct CudaRuntime {
  CudaRuntime();

  Library library;
  Entry<int(int*)> DriverGetVersion{library, "cudaDriverGetVersion"};
  Entry<int(int*)> RuntimeGetVersion{library, "cudaRuntimeGetVersion"};
  Entry<int(int*)> GetDeviceCount{library, "cudaGetDeviceCount"};
  Entry<int(int)> SetDevice{library, "cudaSetDevice"};
  Entry<int(int*, DeviceAttribute, int)> DeviceGetAttribute{library, "cudaDeviceGetAttribute"};
  Entry<int(char*, int, int)> DeviceGetPCIBusId{library, "cudaDeviceGetPCIBusId"};
  Entry<int(size_t*, size_t*)> MemGetInfo{library, "cudaMemGetInfo"};  // free, total
  Entry<int(void**, size_t)> Malloc{library, "cudaMalloc"};
  Entry<int(void*)> Free{library, "cudaFree"};
  Entry<int(void**, size_t, unsigned)> HostAlloc{library, "cudaHostAlloc"};  // pinned
  Entry<int(void*)> FreeHost{library, "cudaFreeHost"};
  Entry<int(void*, const void*, size_t, CopyKind, CudaStream)> MemcpyAsync{library,
                                                                           "cudaMemcpyAsync"};
  Entry<int(void*, int, size_t, CudaStream)> MemsetAsync{library, "cudaMemsetAsync"};
  Entry<int(CudaStream*, unsigned)> StreamCreateWithFlags{library, "cudaStreamCreateWithFlags"};
  Entry<int(CudaStream)> StreamDestroy{library, "cudaStreamDestroy"};
  Entry<int(CudaStream)> StreamSynchronize{library, "cudaStreamSynchronize"};
  Entry<int(CudaStream, CudaEvent, unsigned)> StreamWaitEvent{library, "cudaStreamWaitEvent"};
  Entry<int(CudaEvent*, unsigned)> EventCreateWithFlags{library, "cudaEventCreateWithFlags"};
  Entry<int(CudaEvent)> EventDestroy{library, "cudaEventDestroy"};
  Entry<int(CudaEvent, CudaStream)> EventRecord{library, "cudaEventRecord"};
  Entry<int(CudaEvent)> EventQuery{library, "cudaEventQuery"};
  Entry<int(CudaEvent)> EventSynchronize{library, "cudaEventSynchronize"};
  Entry<int(float*, CudaEvent, CudaEvent)> EventElapsedTime{library, "cudaEventElapsedTime"};
  Entry<int(CudaStream, CaptureMode)> StreamBeginCapture{library, "cudaStreamBeginCapture"};
  Entry<int(CudaStream, CudaGraph*)> StreamEndCapture{library, "cudaStreamEndCapture"};
  Entry<int(CudaGraphExec*, CudaGraph, unsigned long long)> GraphInstantiate{
      library, "cudaGraphInstantiateWithFlags"};
  Entry<int(CudaGraphExec, CudaStream)> GraphLaunch{library, "cudaGraphLaunch"};
  Entry<int(CudaGraphExec)> GraphExecDestroy{library, "cudaGraphExecDestroy"};
  Entry<int(CudaGraph)> GraphDestroy{library, "cudaGraphDestroy"};
  Entry<int(CudaLibrary*, const void*, void*, void*, unsigned, void*, void*, unsigned)>
      LibraryLoadData{library, "cudaLibraryLoadData"};
  Entry<int(CudaLibrary)> LibraryUnload{library, "cudaLibraryUnload"};
  Entry<int(CudaKernel*, CudaLibrary, const char*)> LibraryGetKernel{library,
                                                                     "cudaLibraryGetKernel"};
  Entry<int(const void*, Dim3, Dim3, void**, size_t, CudaStream)> LaunchKernel{library,
                                                                               "cudaLaunchKernel"};
};

// ---- cuBLAS -----------------------------------------------------------------------------------

using BlasHandle = struct BlasHandleData*;

enum class BlasOperation : int { kNone = 0, kTranspose = 1 };
enum class CudaDataType : int { kFp32 = 0, kFp64 = 1, kFp16 = 2, kBf16 = 14 };
enum class BlasCompute : int { kFp32 = 68, kFp64 = 70, kFastTf32 = 77 };
enum class BlasProperty : int { kMajor = 0, kMinor = 1, kPatch = 2 };
inline constexpr int kBlasDefaultAlgorithm = -1;

struct Blas {
  Blas();

  Library library;
  Entry<int(BlasHandle*)> Create{library, "cublasCreate_v2"};
  Entry<int(BlasHandle)> Destroy{library, "cublasDestroy_v2"};
  Entry<int(BlasProperty, int*)> GetProperty{library, "cublasGetProperty"};
  Entry<int(BlasHandle, CudaStream)> SetStream{library, "cublasSetStream_v2"};
  Entry<int(BlasHandle, void*, size_t)> SetWorkspace{library, "cublasSetWorkspace_v2"};
  // Column-major: handle, op A, op B, m, n, k, α, A, type, ld, stride, B, …, β, C, …,
  // batch, compute.
  Entry<int(BlasHandle, BlasOperation, BlasOperation, int, int, int, const void*, const void*,
            CudaDataType, int, long long, const void*, CudaDataType, int, long long, const void*,
            void*, CudaDataType, int, long long, int, BlasCompute, int)>
      GemmStridedBatched{library, "cublasGemmStridedBatchedEx"};
};

// ---- NCCL -------------------------------------------------------------------------------------

using NcclCommunicator = struct NcclCommunicatorData*;

struct NcclUniqueId {
  char bytes[128];
};
enum class NcclType : int { kUint8 = 1, kFp16 = 6, kFp32 = 7, kFp64 = 8, kBf16 = 9 };
enum class NcclReduction : int { kSum = 0, kMaximum = 2 };
inline constexpr int kNcclNoColor = -1;
inline constexpr int kNcclInProgress = 7;

struct Nccl {
  Nccl();

  Library library;
  Entry<int(int*)> GetVersion{library, "ncclGetVersion"};
  Entry<int(NcclUniqueId*)> GetUniqueId{library, "ncclGetUniqueId"};
  Entry<int(NcclCommunicator*, int, NcclUniqueId, int)> CommInitRank{library, "ncclCommInitRank"};
  // The last parameter is a configuration; null inherits the parent's.
  Entry<int(NcclCommunicator, int, int, NcclCommunicator*, void*)> CommSplit{library,
                                                                             "ncclCommSplit"};
  Entry<int(NcclCommunicator)> CommDestroy{library, "ncclCommDestroy"};
  Entry<int(NcclCommunicator)> CommAbort{library, "ncclCommAbort"};
  Entry<int(NcclCommunicator, int*)> CommGetAsyncError{library, "ncclCommGetAsyncError"};
  Entry<int()> GroupStart{library, "ncclGroupStart"};
  Entry<int()> GroupEnd{library, "ncclGroupEnd"};
  Entry<int(const void*, void*, size_t, NcclType, NcclReduction, NcclCommunicator, CudaStream)>
      AllReduce{library, "ncclAllReduce"};
  Entry<int(const void*, void*, size_t, NcclType, int, NcclCommunicator, CudaStream)> Broadcast{
      library, "ncclBroadcast"};
  Entry<int(const void*, void*, size_t, NcclType, NcclReduction, int, NcclCommunicator, CudaStream)>
      Reduce{library, "ncclReduce"};
  Entry<int(const void*, void*, size_t, NcclType, NcclCommunicator, CudaStream)> AllGather{
      library, "ncclAllGather"};
  Entry<int(const void*, void*, size_t, NcclType, NcclReduction, NcclCommunicator, CudaStream)>
      ReduceScatter{library, "ncclReduceScatter"};
  Entry<int(const void*, size_t, NcclType, int, NcclCommunicator, CudaStream)> Send{library,
                                                                                    "ncclSend"};
  Entry<int(void*, size_t, NcclType, int, NcclCommunicator, CudaStream)> Receive{library,
                                                                                 "ncclRecv"};
};

// ---- NVML -------------------------------------------------------------------------------------

using NvmlDevice = struct NvmlDeviceData*;
enum class NvmlClock : int { kGraphics = 0, kMultiprocessor = 1, kMemory = 2 };

struct Nvml {
  Nvml();

  Library library;
  Entry<int()> Initialize{library, "nvmlInit_v2"};
  Entry<int()> Shutdown{library, "nvmlShutdown"};
  Entry<int(char*, unsigned)> SystemGetDriverVersion{library, "nvmlSystemGetDriverVersion"};
  Entry<int(const char*, NvmlDevice*)> DeviceGetHandleByPciBusId{
      library, "nvmlDeviceGetHandleByPciBusId_v2"};
  Entry<int(NvmlDevice, char*, unsigned)> DeviceGetName{library, "nvmlDeviceGetName"};
  Entry<int(NvmlDevice, char*, unsigned)> DeviceGetUuid{library, "nvmlDeviceGetUUID"};
  Entry<int(NvmlDevice, NvmlClock, unsigned*)> DeviceGetClock{library, "nvmlDeviceGetClockInfo"};
  Entry<int(NvmlDevice, NvmlClock, unsigned*)> DeviceGetMaximumClock{library,
                                                                     "nvmlDeviceGetMaxClockInfo"};
  Entry<int(NvmlDevice, unsigned*)> DeviceGetPowerLimit{library, "nvmlDeviceGetEnforcedPowerLimit"};
  Entry<int(NvmlDevice, unsigned*)> DeviceGetPower{library, "nvmlDeviceGetPowerUsage"};
  Entry<int(NvmlDevice, int, unsigned*)> DeviceGetTemperature{library, "nvmlDeviceGetTemperature"};
};

// What a CUDA run calls, opened once per process. Throws Error naming the first missing library. A
// single rank does not need NCCL.
struct GpuLibraries {
  GpuLibraries();
  // Throws Error if there is no NCCL.
  const Nccl& RequireNccl() const;

  CudaRuntime cuda;
  Blas blas;
  std::optional<Nccl> nccl;
  std::string nccl_missing;  // why there is none
};
const GpuLibraries& LoadGpuLibraries();

// "2.28.9" for 22809, "13.0" for CUDA's 13000.
std::string NcclVersionText(int version);
std::string CudaVersionText(int version);
std::string BlasVersionText(const Blas& blas);

}  // namespace rehearse
