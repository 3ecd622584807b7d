// How NCCL runs each operation (algorithm, protocol, channels), from its profiler plugin interface.
//
// The program itself is the plugin: it exports the interface's tables, and
// NCCL_PROFILER_PLUGIN=STATIC_PLUGIN has NCCL look for them in the running program instead of a
// file. A profiler that the user has chosen (that variable, "none" included, or a
// libnccl-profiler.so that is found) is left alone. Only operations are asked for, not what proxies
// and kernels do, so the GPU has no extra work.
//
// NCCL reports an operation on the thread that launches it, before the launch returns: what is
// heard while a listener lives belongs to that listener's op. A communicator of one rank copies,
// and reports nothing. Sources: NVIDIA/nccl, ext-profiler/README.md and src/plugin; layouts as in
// the debug information of NCCL 2.28.9.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "real/backends/library_choice.h"
#include "real/cuda/libraries.h"

namespace rehearse {

// Keeps what NCCL reports on this thread while it lives; only one at a time.
class NcclListener {
 public:
  NcclListener();
  NcclListener(const NcclListener&) = delete;
  NcclListener& operator=(const NcclListener&) = delete;
  ~NcclListener();

  bool has_heard() const { return has_heard_; }
  // The op is missing in it. Of several messages it has the most channels that one of them has.
  const LibraryChoice& heard() const { return heard_; }

  void Hear(const char* algorithm, const char* protocol, uint32_t channels);

 private:
  bool has_heard_ = false;
  LibraryChoice heard_;
};

// Asks NCCL to call this program, unless the user has a profiler. Sets the environment, so it must
// be called before threads are started and before the first communicator.
void OfferNcclProfiler();

struct NcclProfilerState {
  int interface = 0;    // the version that NCCL called; 0: none
  std::string why_not;  // if it called none
};
// Call this once communicators have been made.
NcclProfilerState ReadNcclProfilerState(const GpuLibraries& gpu);
nlohmann::ordered_json ToJson(const NcclProfilerState& state);

}  // namespace rehearse
