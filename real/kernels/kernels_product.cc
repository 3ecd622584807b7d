// Matrix products, by OpenBLAS if there is one.
#include <mutex>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "real/kernels/blas.h"
#include "real/kernels/kernel_rows.h"
#include "real/kernels/kernels.h"
#include "sim/base/error.h"

#ifndef REHEARSE_NO_OPENBLAS
// OpenBLAS exports these, though its headers do not have them.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
__attribute__((weak)) void* blas_memory_alloc(int unused);
__attribute__((weak)) void blas_memory_free(void* buffer);
// NOLINTEND(readability-identifier-naming)
}
#endif

namespace rehearse {

#ifdef REHEARSE_NO_OPENBLAS
void SetBlasThreads(int /*threads*/) {}
void TakeRoomForProducts(uint32_t /*threads*/) {}

std::string BlasDescription() { return "plain loops (built without OpenBLAS)"; }
#else
void SetBlasThreads(int threads) { openblas_set_num_threads(threads); }

// OpenBLAS writes its configuration into the same array for every caller, so ranks that are threads
// must not ask at the same time.
std::string BlasDescription() {
  static const std::string description =
      fmt::format("{} core {}", openblas_get_config(), openblas_get_corename());
  return description;
}

// OpenBLAS keeps 128 MiB of addresses for each thread that multiplies, and where it gets none, it
// asks again and again, forever. So this has it take them as soon as there is room for all.
void TakeRoomForProducts(uint32_t threads) {
  static std::mutex mutex;
  static uint32_t taken = 0;
  constexpr size_t kOfThread = size_t{130} << 20;
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY) return;
  const std::lock_guard lock(mutex);
  if (threads <= taken) return;
  const size_t missing = (threads - taken) * kOfThread;
  void* const room =
      mmap(nullptr, missing, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    throw Error(
        fmt::format("out of memory: OpenBLAS takes 128 MiB of addresses for each of {} thread{} "
                    "that multiplies, and the machine gives no more (ulimit -v)",
                    threads, threads == 1 ? "" : "s"));
  }
  munmap(room, missing);
  if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
  std::vector<void*> buffers;
  for (uint32_t i = 0; i < threads; ++i) buffers.push_back(blas_memory_alloc(0));
  for (void* buffer : buffers) {
    if (buffer != nullptr) blas_memory_free(buffer);
  }
  taken = threads;
}
#endif

namespace kernels {
namespace {

// The i-th of `batch` matrices of this shape, stacked on top of each other.
template <typename T>
Matrix<T> InBatch(const Matrix<T>& stacked, uint32_t i, uint64_t rows) {
  return {stacked.Row(i * rows), rows, stacked.columns, stacked.stride};
}

}  // namespace

template <typename T>
void Product(const KernelCall<T>& call) {
  const Gemm& gemm = call.compute.gemm;
  const Operand<T>& a = call.reads[0];
  const Operand<T>& b = call.reads[1];
  const Operand<T>& c = call.writes[0];
  const bool a_transposed = gemm.mode == GemmMode::kTN;
  const bool b_transposed = gemm.mode == GemmMode::kNT;
  const uint64_t a_rows = a_transposed ? gemm.k : gemm.m;
  const uint64_t b_rows = b_transposed ? gemm.n : gemm.k;
  CHECK_EQ(a.rows, a_rows * gemm.batch);
  CHECK_EQ(a.columns, a_transposed ? gemm.m : gemm.k);
  CHECK_EQ(b.rows, b_rows * gemm.batch);
  CHECK_EQ(b.columns, b_transposed ? gemm.k : gemm.n);
  CHECK_EQ(c.rows, gemm.m * gemm.batch);
  CHECK_EQ(c.columns, gemm.n);
  const bool accumulates = call.reads.size() > 2;
  for (uint32_t i = 0; i < gemm.batch; ++i) {
    MultiplyMatrices<T>(a_transposed ? Transposed::kYes : Transposed::kNo,
                        b_transposed ? Transposed::kYes : Transposed::kNo, T(1),
                        InBatch<T>(a, i, a_rows), InBatch<T>(b, i, b_rows), T(accumulates ? 1 : 0),
                        InBatch<T>(c, i, gemm.m));
  }
}

REHEARSE_INSTANTIATE(Product);

}  // namespace kernels
}  // namespace rehearse
