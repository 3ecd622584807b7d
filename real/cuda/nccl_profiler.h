// How NCCL carries out each operation - algorithm, protocol, channels - from its profiler
// plugin interface.
//
// The program itself is the plugin: it exports the interface's tables, and
// NCCL_PROFILER_PLUGIN=STATIC_PLUGIN has NCCL look for them in the running program instead of a
// file. A profiler that the user has chosen (that variable, "none" included, or a
// libnccl-profiler.so that is found) is left alone. Only operations are asked for, not what proxies
// and kernels do: the GPU does nothing more for it.
//
// NCCL tells of an operation on the thread that launches it, before the launch returns: what is
// heard while a listener lives belongs to that listener's op. A communicator of one rank copies,
// and tells nothing. Sources: NVIDIA/nccl, ext-profiler/README.md and src/plugin; layouts as in the
// debug information of NCCL 2.28.9.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "real/backends/library_choice.h"
#include "real/cuda/libraries.h"

namespace rehearse {

// Keeps what NCCL tells on this thread while it lives; one at a time.
class NcclListener {
 public:
  NcclListener();
  NcclListener(const NcclListener&) = delete;
  NcclListener& operator=(const NcclListener&) = delete;
  ~NcclListener();

  bool has_heard() const { return has_heard_; }
  // Without the op. Of several messages the most channels that one has.
  const LibraryChoice& heard() const { return heard_; }

  void Hear(const char* algorithm, const char* protocol, uint32_t channels);

 private:
  bool has_heard_ = false;
  LibraryChoice heard_;
};

// Asks NCCL to call this program, unless the user has a profiler. Sets the environment: before
// threads are started, and before the first communicator.
void OfferNcclProfiler();

struct NcclProfilerState {
  int interface = 0;    // the version that NCCL has called; 0: none
  std::string why_not;  // where it has called none
};
// Once communicators have been made.
NcclProfilerState ReadNcclProfilerState(const GpuLibraries& gpu);
nlohmann::ordered_json ToJson(const NcclProfilerState& state);

}  // namespace rehearse
