#include "real/cuda/nccl_profiler.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <dlfcn.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "real/cuda/nccl_profiler_abi.h"

namespace rehearse {
namespace {

constexpr const char* kVariable = "NCCL_PROFILER_PLUGIN";
constexpr const char* kThisProgram = "STATIC_PLUGIN";
constexpr int kFirstNcclWithProfilers = 22300;

std::atomic<int> interface_called{0};
thread_local NcclListener* listening = nullptr;

// ---- what NCCL calls ----------------------------------------------------------------------------

// Contexts and handles must not be null: versions 2 to 4 report nothing about operations whose
// group has none.
void* Anything() { return &interface_called; }

template <int kVersion>
int Greet(void** context, int* wanted) {
  interface_called = kVersion;
  *context = Anything();
  *wanted = kNcclCollectiveEvent | kNcclMessageEvent;
  return 0;
}

int InitV4(void** context, int* wanted, const char* /*name*/, uint64_t /*hash*/, int /*nodes*/,
           int /*ranks*/, int /*rank*/, void* /*log*/) {
  return Greet<4>(context, wanted);
}

int InitV5(void** context, uint64_t /*hash*/, int* wanted, const char* /*name*/, int /*nodes*/,
           int /*ranks*/, int /*rank*/, void* /*log*/) {
  return Greet<5>(context, wanted);
}

template <typename Event>
int Start(void* /*context*/, void** handle, const Event* event) {
  *handle = Anything();
  if (listening == nullptr) return 0;
  if (event->head.type == kNcclCollectiveEvent) {
    listening->Hear(event->collective.algorithm, event->collective.protocol,
                    event->collective.channels);
  } else if (event->head.type == kNcclMessageEvent) {
    if constexpr (std::is_same_v<Event, NcclEventV4>) {
      listening->Hear("", "", event->message.channels);
    } else {
      listening->Hear("", "", 0);
    }
  }
  return 0;
}

int Stop(void* /*handle*/) { return 0; }
int RecordState(void* /*handle*/, int /*state*/, const void* /*arguments*/) { return 0; }
int Finalize(void* /*context*/) { return 0; }

template <size_t kSize>
void Keep(const char* text, std::array<char, kSize>* kept) {
  kept->fill('\0');
  if (text != nullptr) std::strncpy(kept->data(), text, kSize - 1);
}

// ---- whose profiler it is -----------------------------------------------------------------------

std::string UsersProfiler() {
  const char* named = std::getenv(kVariable);
  if (named != nullptr && *named != '\0') {
    if (std::string_view(named) == kThisProgram) return "";
    return fmt::format("{} is \"{}\"", kVariable, named);
  }
  // What NCCL opens by default.
  constexpr const char* kUsual = "libnccl-profiler.so";
  void* found = dlopen(kUsual, RTLD_NOW | RTLD_LOCAL);
  if (found == nullptr) return "";
  dlclose(found);
  return fmt::format("{} is installed, which NCCL uses", kUsual);
}

const std::string& UsersProfilerAtStart() {
  static const std::string said = UsersProfiler();
  return said;
}

}  // namespace

NcclListener::NcclListener() { listening = this; }
NcclListener::~NcclListener() { listening = nullptr; }

void NcclListener::Hear(const char* algorithm, const char* protocol, uint32_t channels) {
  has_heard_ = true;
  Keep(algorithm, &heard_.algorithm);
  Keep(protocol, &heard_.protocol);
  heard_.channels = std::max(heard_.channels, channels);
}

void OfferNcclProfiler() {
  if (UsersProfilerAtStart().empty()) setenv(kVariable, kThisProgram, 1);
}

NcclProfilerState ReadNcclProfilerState(const GpuLibraries& gpu) {
  if (interface_called != 0) return {interface_called, ""};
  if (!UsersProfilerAtStart().empty()) return {0, UsersProfilerAtStart()};
  if (!gpu.nccl) return {0, "there is no NCCL here"};
  int version = 0;
  gpu.nccl->GetVersion(&version);
  if (version < kFirstNcclWithProfilers) {
    return {0, fmt::format("NCCL {} has no profiler interface; 2.23 was the first",
                           NcclVersionText(version))};
  }
  return {0, fmt::format("NCCL {} did not take the interface's versions 2 to 5",
                         NcclVersionText(version))};
}

nlohmann::ordered_json ToJson(const NcclProfilerState& state) {
  nlohmann::ordered_json json = {{"interface", state.interface}};
  if (!state.why_not.empty()) json["why_not"] = state.why_not;
  return json;
}

// ---- what NCCL looks for, by name ---------------------------------------------------------------

// Everything else in Rehearse is hidden from other libraries.
#define REHEARSE_SHOWN __attribute__((visibility("default")))

extern const NcclProfilerTable<NcclInitV2, NcclEventV2> kTableV2 __asm__("ncclProfiler_v2")
    REHEARSE_SHOWN;
extern const NcclProfilerTable<NcclInitV2, NcclEventV3> kTableV3 __asm__("ncclProfiler_v3")
    REHEARSE_SHOWN;
extern const NcclProfilerTable<NcclInitV4, NcclEventV4> kTableV4 __asm__("ncclProfiler_v4")
    REHEARSE_SHOWN;
extern const NcclProfilerTable<NcclInitV5, NcclEventV4> kTableV5 __asm__("ncclProfiler_v5")
    REHEARSE_SHOWN;

const NcclProfilerTable<NcclInitV2, NcclEventV2> kTableV2 = {
    "rehearse", Greet<2>, Start<NcclEventV2>, Stop, RecordState, Finalize};
const NcclProfilerTable<NcclInitV2, NcclEventV3> kTableV3 = {
    "rehearse", Greet<3>, Start<NcclEventV3>, Stop, RecordState, Finalize};
const NcclProfilerTable<NcclInitV4, NcclEventV4> kTableV4 = {
    "rehearse", InitV4, Start<NcclEventV4>, Stop, RecordState, Finalize};
const NcclProfilerTable<NcclInitV5, NcclEventV4> kTableV5 = {
    "rehearse", InitV5, Start<NcclEventV4>, Stop, RecordState, Finalize};

}  // namespace rehearse
