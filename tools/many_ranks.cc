#include "tools/many_ranks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "real/transports/transport_mpi.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/say.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

// Watches the other ranks while this one simulates without sending or receiving messages. Work that
// does not end when asked to is ended by force.
class RankWatch {
 public:
  explicit RankWatch(Transport& transport) : transport_(transport), thread_([this] { Watch(); }) {}
  ~RankWatch() { Stop(); }
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  bool is_lost() const { return is_lost_; }
  // Throws Error if a rank was lost.
  void End() {
    Stop();
    if (is_lost_) throw Error(why_);
  }

 private:
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void Watch() {
    constexpr std::chrono::milliseconds kBetweenLooks{50};
    constexpr int kLooksToEnd = 60;
    int looks = 0;
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kBetweenLooks, [this] { return is_over_; })) {
      if (is_lost_) {
        if (++looks < kLooksToEnd) continue;
        Say(fmt::format("rank {}: {}", transport_.rank(), why_));
        std::_Exit(1);
      }
      try {
        transport_.Check();
      } catch (const std::exception& lost) {
        why_ = lost.what();
        is_lost_ = true;
      }
    }
  }

  Transport& transport_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::string why_;
  std::atomic<bool> is_lost_{false};
  std::thread thread_;  // last: it uses the others
};

std::string RankFile(const std::string& path, uint32_t rank) {
  return fmt::format("{}.rank{}", path, rank);
}

// Merges what ranks have kept into the common file, from any number of ranks: an earlier run may
// have had more of them.
void MergeRanks(const std::string& path, bool resumes) {
  const fs::path whole = fs::absolute(path);
  const std::string begin = whole.filename().string() + ".rank";
  std::vector<fs::path> parts;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(whole.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > begin.size() && name.starts_with(begin) &&
        name.find_first_not_of("0123456789", begin.size()) == std::string::npos)
      parts.push_back(entry.path());
  }
  const bool is_there = fs::exists(whole, ignored) || !parts.empty();
  ResultsFile all(path, resumes && !is_there ? ResultsFile::Opening::kThere
                                             : ResultsFile::Opening::kMakeIfMissing);
  for (const fs::path& part : parts) {
    {
      ResultsFile one(part.string(), ResultsFile::Opening::kMakeIfMissing);
      all.Merge(one);
    }
    fs::remove(part, ignored);
  }
}

int PlayRank(Transport& transport, const ResultsOptions& results,
             const std::function<void(const RankShare&)>& work,
             const std::function<int()>& finish) {
  const bool is_first = transport.rank() == 0;
  if (is_first) MergeRanks(results.path, results.resumes);
  transport.Barrier();
  const std::unique_ptr<Leases> leases = MakeMpiLeases(transport);
  transport.set_activity("simulating points");
  std::optional<std::string> fault;
  {
    RankWatch watch(transport);
    try {
      ResultsFile before(results.path, ResultsFile::Opening::kFrozen);
      ResultsFile own(RankFile(results.path, transport.rank()),
                      ResultsFile::Opening::kMakeIfMissing);
      work({.leases = leases.get(),
            .stores = {&own, &before},
            .is_stopped = [&watch] { return watch.is_lost() || IsStopAsked(); },
            .threads = std::max(1u, std::thread::hardware_concurrency() /
                                        std::max(1u, transport.ranks_on_host()))});
    } catch (const Stopped&) {
      // Either a rank was lost, or all are to stop.
    } catch (const Error& error) {
      fault = error.what();
    }
    watch.End();
  }
  transport.Barrier();
  leases->Close();
  if (!is_first) return StopCode();
  // `finish` also finds what is wrong with a point; only this rank knows what kept it from working.
  MergeRanks(results.path, false);
  if (fault) throw Error(*fault);
  return finish();
}

}  // namespace

std::optional<Launch> SharingLaunch(const ResultsOptions& results) {
  if (!results.shard.IsWhole()) return std::nullopt;
  std::optional<Launch> launch = DetectLaunch();
  // A batch script sees Slurm's variables without having been started by srun, and srun without
  // PMIx starts processes that do not know of each other.
  const bool is_mpi = launch && (launch->launcher == "mpirun" ||
                                 (launch->launcher == "srun" && getenv("PMIX_RANK") != nullptr));
  if (!is_mpi || launch->ranks == 1) return std::nullopt;
  if (results.path.empty())
    throw Error(fmt::format(
        "{} started {} ranks, which share points through files; expected --results FILE too",
        launch->launcher, launch->ranks));
  return launch;
}

int PlayOnRanks(const Launch& launch, const ResultsOptions& results,
                const std::function<void(const RankShare&)>& work,
                const std::function<int()>& finish) {
  const std::unique_ptr<Transport> transport = JoinMpi(launch);
  // The message must be out before the transport closes: launchers then kill the processes.
  try {
    return PlayRank(*transport, results, work, finish);
  } catch (const std::exception& error) {
    transport->Abort(fmt::format("rank {} gave up: {}", launch.rank, error.what()));
    Say(fmt::format("rank {}: {}", launch.rank, error.what()));
    return dynamic_cast<const InternalError*>(&error) != nullptr ? 2 : 1;
  }
}

}  // namespace rehearse
