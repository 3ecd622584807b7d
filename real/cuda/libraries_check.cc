// Compares real/cuda/libraries.h with the vendors' headers, at compile time, where they
// are installed.
#include <type_traits>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "real/cuda/libraries.h"

namespace rehearse {
namespace {

// Whether both are passed in the same way in registers or memory: two pointers, two integers or
// enumerations of one width, or two plain structs of one size.
template <typename T>
constexpr bool kIsWord = std::is_integral_v<T> || std::is_enum_v<T>;
template <typename T>
constexpr bool kIsStruct = std::is_class_v<T>&& std::is_trivially_copyable_v<T>;
template <typename A, typename B>
constexpr bool kPassedAlike = sizeof(A) == sizeof(B) &&
                              ((std::is_pointer_v<A> && std::is_pointer_v<B>) ||
                               (kIsWord<A> && kIsWord<B>) || (kIsStruct<A> && kIsStruct<B>));

template <typename Ours, typename Theirs>
constexpr bool kSameInterface = false;
template <typename... Ours, typename Result, typename... Theirs>
constexpr bool kSameInterface<Entry<int(Ours...)>, Result (*)(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return kPassedAlike<int, Result> && (kPassedAlike<Ours, Theirs> && ...);
  } else {
    return false;
  }
}();

// A line fails to compile if the vendor's function is not as real/cuda/libraries.h declares it.
#define SAME(ours, theirs) static_assert(kSameInterface<decltype(ours), decltype(&::theirs)>)

SAME(CudaRuntime::DriverGetVersion, cudaDriverGetVersion);
SAME(CudaRuntime::RuntimeGetVersion, cudaRuntimeGetVersion);
SAME(CudaRuntime::GetDeviceCount, cudaGetDeviceCount);
SAME(CudaRuntime::SetDevice, cudaSetDevice);
SAME(CudaRuntime::DeviceGetAttribute, cudaDeviceGetAttribute);
SAME(CudaRuntime::DeviceGetPCIBusId, cudaDeviceGetPCIBusId);
SAME(CudaRuntime::MemGetInfo, cudaMemGetInfo);
SAME(CudaRuntime::Free, cudaFree);
SAME(CudaRuntime::FreeHost, cudaFreeHost);
SAME(CudaRuntime::MemcpyAsync, cudaMemcpyAsync);
SAME(CudaRuntime::MemsetAsync, cudaMemsetAsync);
SAME(CudaRuntime::StreamCreateWithFlags, cudaStreamCreateWithFlags);
SAME(CudaRuntime::StreamDestroy, cudaStreamDestroy);
SAME(CudaRuntime::StreamSynchronize, cudaStreamSynchronize);
SAME(CudaRuntime::StreamWaitEvent, cudaStreamWaitEvent);
SAME(CudaRuntime::EventCreateWithFlags, cudaEventCreateWithFlags);
SAME(CudaRuntime::EventDestroy, cudaEventDestroy);
SAME(CudaRuntime::EventRecord, cudaEventRecord);
SAME(CudaRuntime::EventQuery, cudaEventQuery);
SAME(CudaRuntime::EventSynchronize, cudaEventSynchronize);
SAME(CudaRuntime::EventElapsedTime, cudaEventElapsedTime);
SAME(CudaRuntime::StreamBeginCapture, cudaStreamBeginCapture);
SAME(CudaRuntime::StreamEndCapture, cudaStreamEndCapture);
SAME(CudaRuntime::GraphInstantiate, cudaGraphInstantiateWithFlags);
SAME(CudaRuntime::GraphLaunch, cudaGraphLaunch);
SAME(CudaRuntime::GraphExecDestroy, cudaGraphExecDestroy);
SAME(CudaRuntime::GraphDestroy, cudaGraphDestroy);
SAME(CudaRuntime::LibraryLoadData, cudaLibraryLoadData);
SAME(CudaRuntime::LibraryUnload, cudaLibraryUnload);
SAME(CudaRuntime::LibraryGetKernel, cudaLibraryGetKernel);

SAME(Blas::Create, cublasCreate_v2);
SAME(Blas::Destroy, cublasDestroy_v2);
SAME(Blas::GetProperty, cublasGetProperty);
SAME(Blas::SetStream, cublasSetStream_v2);
SAME(Blas::SetWorkspace, cublasSetWorkspace_v2);

SAME(Nccl::GetVersion, ncclGetVersion);
SAME(Nccl::GetUniqueId, ncclGetUniqueId);
SAME(Nccl::CommInitRank, ncclCommInitRank);
SAME(Nccl::CommSplit, ncclCommSplit);
SAME(Nccl::CommDestroy, ncclCommDestroy);
SAME(Nccl::CommAbort, ncclCommAbort);
SAME(Nccl::CommGetAsyncError, ncclCommGetAsyncError);
SAME(Nccl::GroupStart, ncclGroupStart);
SAME(Nccl::GroupEnd, ncclGroupEnd);
SAME(Nccl::AllReduce, ncclAllReduce);
SAME(Nccl::Broadcast, ncclBroadcast);
SAME(Nccl::Reduce, ncclReduce);
SAME(Nccl::AllGather, ncclAllGather);
SAME(Nccl::ReduceScatter, ncclReduceScatter);
SAME(Nccl::Send, ncclSend);
SAME(Nccl::Receive, ncclRecv);

#undef SAME

template <typename Ours, typename Theirs>
constexpr bool Equal(Ours ours, Theirs theirs) {
  return static_cast<long long>(ours) == static_cast<long long>(theirs);
}

// It is overloaded for C++ in the headers, so the C function that the library has is named here.
static_assert(kSameInterface<
              decltype(CudaRuntime::HostAlloc),
              decltype(static_cast<cudaError_t (*)(void**, size_t, unsigned)>(&::cudaHostAlloc))>);
static_assert(
    kSameInterface<decltype(CudaRuntime::LaunchKernel),
                   decltype(static_cast<cudaError_t (*)(const void*, dim3, dim3, void**, size_t,
                                                        cudaStream_t)>(&::cudaLaunchKernel))>);
static_assert(
    kSameInterface<
        decltype(Blas::GemmStridedBatched),
        decltype(static_cast<cublasStatus_t (*)(
                     cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                     const void*, const void*, cudaDataType, int, long long, const void*,
                     cudaDataType, int, long long, const void*, void*, cudaDataType, int, long long,
                     int, cublasComputeType_t, cublasGemmAlgo_t)>(&::cublasGemmStridedBatchedEx))>);
static_assert(sizeof(Dim3) == sizeof(dim3));
static_assert(sizeof(NcclUniqueId) == sizeof(ncclUniqueId));
static_assert(Equal(CopyKind::kHostToDevice, cudaMemcpyHostToDevice));
static_assert(Equal(CopyKind::kDeviceToHost, cudaMemcpyDeviceToHost));
static_assert(Equal(CopyKind::kDeviceToDevice, cudaMemcpyDeviceToDevice));
static_assert(Equal(DeviceAttribute::kClockKilohertz, cudaDevAttrClockRate));
static_assert(Equal(DeviceAttribute::kMultiprocessors, cudaDevAttrMultiProcessorCount));
static_assert(Equal(DeviceAttribute::kComputeMajor, cudaDevAttrComputeCapabilityMajor));
static_assert(Equal(DeviceAttribute::kComputeMinor, cudaDevAttrComputeCapabilityMinor));
static_assert(Equal(kCudaNotReady, cudaErrorNotReady));
static_assert(Equal(kStreamNonBlocking, cudaStreamNonBlocking));
static_assert(Equal(kEventDisableTiming, cudaEventDisableTiming));
static_assert(Equal(CaptureMode::kThreadLocal, cudaStreamCaptureModeThreadLocal));
static_assert(Equal(BlasOperation::kNone, CUBLAS_OP_N));
static_assert(Equal(BlasOperation::kTranspose, CUBLAS_OP_T));
static_assert(Equal(CudaDataType::kFp32, CUDA_R_32F));
static_assert(Equal(CudaDataType::kFp64, CUDA_R_64F));
static_assert(Equal(CudaDataType::kFp16, CUDA_R_16F));
static_assert(Equal(CudaDataType::kBf16, CUDA_R_16BF));
static_assert(Equal(BlasCompute::kFp32, CUBLAS_COMPUTE_32F));
static_assert(Equal(BlasCompute::kFp64, CUBLAS_COMPUTE_64F));
static_assert(Equal(BlasCompute::kFastTf32, CUBLAS_COMPUTE_32F_FAST_TF32));
static_assert(Equal(BlasProperty::kMajor, MAJOR_VERSION));
static_assert(Equal(BlasProperty::kMinor, MINOR_VERSION));
static_assert(Equal(BlasProperty::kPatch, PATCH_LEVEL));
static_assert(Equal(kBlasDefaultAlgorithm, CUBLAS_GEMM_DEFAULT));
static_assert(Equal(NcclType::kUint8, ncclUint8));
static_assert(Equal(NcclType::kFp16, ncclFloat16));
static_assert(Equal(NcclType::kFp32, ncclFloat32));
static_assert(Equal(NcclType::kFp64, ncclFloat64));
static_assert(Equal(NcclType::kBf16, ncclBfloat16));
static_assert(Equal(NcclReduction::kSum, ncclSum));
static_assert(Equal(NcclReduction::kMaximum, ncclMax));
static_assert(Equal(kNcclNoColor, NCCL_SPLIT_NOCOLOR));
static_assert(Equal(kNcclInProgress, ncclInProgress));

}  // namespace
}  // namespace rehearse
