#include "real/transports/leases.h"

#include "sim/base/error.h"

#ifdef REHEARSE_HAS_MPI

#include <mutex>

#include <mpi.h>

#include "real/transports/lost_rank_watch.h"

namespace rehearse {
namespace {

class MpiLeases final : public Leases {
 public:
  explicit MpiLeases(Transport& transport) : transport_(transport) {
    const LostRankWatch watch(transport, "MPI");
    const bool is_owner = transport.rank() == 0;
    MPI_Win_allocate(is_owner ? sizeof(uint64_t) : 0, sizeof(uint64_t), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &counter_, &window_);
    if (is_owner) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window_);
      *counter_ = 0;
      MPI_Win_unlock(0, window_);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window_);
  }

  uint64_t Next() override {
    const std::lock_guard lock(mutex_);
    const LostRankWatch watch(transport_, "MPI");
    const uint64_t one = 1;
    uint64_t number = 0;
    MPI_Fetch_and_op(&one, &number, MPI_UINT64_T, 0, 0, MPI_SUM, window_);
    MPI_Win_flush(0, window_);
    return number;
  }

  void Close() override {
    const LostRankWatch watch(transport_, "MPI");
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

 private:
  Transport& transport_;
  uint64_t* counter_ = nullptr;  // rank 0's
  MPI_Win window_ = MPI_WIN_NULL;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Leases> MakeMpiLeases(Transport& transport) {
  return std::make_unique<MpiLeases>(transport);
}

}  // namespace rehearse

#else

namespace rehearse {

std::unique_ptr<Leases> MakeMpiLeases(Transport& /*transport*/) {
  throw Error("this rehearse was built without MPI");
}

}  // namespace rehearse

#endif
