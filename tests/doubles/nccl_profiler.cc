#include "tests/doubles/nccl_profiler.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fmt/format.h>

namespace rehearse::gpu_double {
namespace {

constexpr uint8_t kGroup = 1 << 0;
constexpr uint8_t kCollective = 1 << 1;
constexpr uint8_t kMessage = 1 << 2;

// Where facts lie in an event, in bytes; 0 where a version does not have them.
struct Layout {
  int version;
  int first_nccl;
  size_t channels;
  size_t algorithm;
  size_t protocol;
  size_t message_channels;
};
constexpr std::array<Layout, 4> kLayouts = {{{5, 22800, 80, 88, 96, 60},
                                             {4, 22700, 80, 88, 96, 60},
                                             {3, 22600, 96, 104, 112, 0},
                                             {2, 22400, 104, 112, 120, 0}}};

// A plugin's table, whatever its version.
struct Table {
  const char* name;
  void* init;
  int (*start)(void* context, void** handle, void* event);
  int (*stop)(void* handle);
  int (*record_state)(void* handle, int state, void* arguments);
  int (*finalize)(void* context);
};

struct Profiler {
  const Layout* layout = nullptr;
  const Table* table = nullptr;
};

Profiler FindProfiler() {
  const char* named = std::getenv("NCCL_PROFILER_PLUGIN");
  if (named == nullptr || std::string_view(named) == "none") return {};
  const bool is_program = std::string_view(named) == "STATIC_PLUGIN";
  void* library = dlopen(is_program ? nullptr : named, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  for (const Layout& layout : kLayouts) {
    if (World::Get().control.nccl_version < layout.first_nccl) continue;
    const std::string symbol = fmt::format("ncclProfiler_v{}", layout.version);
    if (void* table = dlsym(library, symbol.c_str()))
      return {&layout, static_cast<const Table*>(table)};
  }
  return {};
}

void Expect(int status, const char* call) {
  if (status != 0) World::Get().Report(fmt::format("the profiler's {} returned {}", call, status));
}

int Init(const Profiler& profiler, Communicator* communicator, int* wanted) {
  void** context = &communicator->profiler_context;
  const auto ranks = static_cast<int>(communicator->size);
  using Old = int (*)(void**, int*);
  using V4 = int (*)(void**, int*, const char*, uint64_t, int, int, int, void*);
  using V5 = int (*)(void**, uint64_t, int*, const char*, int, int, int, void*);
  void* init = profiler.table->init;
  if (profiler.layout->version == 5) {
    return reinterpret_cast<V5>(init)(context, 1, wanted, nullptr, 1, ranks, communicator->rank,
                                      nullptr);
  }
  if (profiler.layout->version == 4) {
    return reinterpret_cast<V4>(init)(context, wanted, nullptr, 1, 1, ranks, communicator->rank,
                                      nullptr);
  }
  return reinterpret_cast<Old>(init)(context, wanted);
}

class ProfilerEvent {
 public:
  // Little-endian, as wide as the version has it.
  ProfilerEvent(uint8_t type, int rank) {
    Put(0, type);
    Put(16, rank);
  }
  template <typename T>
  void Put(size_t offset, T value) {
    if (offset > 0 || sizeof value == 1) std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  // From beginning to end; the parent is a group's.
  void* Start(const Profiler& profiler, void* context) {
    void* handle = nullptr;
    Expect(profiler.table->start(context, &handle, bytes_.data()), "startEvent");
    return handle;
  }

 private:
  alignas(8) std::array<std::byte, 128> bytes_{};
};

void TellCollective(const Profiler& profiler, const Communicator& communicator,
                    const Operation& operation) {
  const bool by_tree = operation.kind == Kind::kAllReduce &&
                       operation.elements * SizeOf(operation.type) <= kTreeBytes;
  ProfilerEvent event(kCollective, communicator.rank);
  event.Put(profiler.layout->channels, static_cast<uint8_t>(by_tree ? 1 : 2));
  event.Put(profiler.layout->algorithm, by_tree ? "TREE" : "RING");
  event.Put(profiler.layout->protocol, by_tree ? "LL" : "SIMPLE");
  Expect(profiler.table->stop(event.Start(profiler, communicator.profiler_context)), "stopEvent");
}

void TellMessage(const Profiler& profiler, const Communicator& communicator) {
  ProfilerEvent event(kMessage, communicator.rank);
  if (profiler.layout->message_channels > 0)
    event.Put(profiler.layout->message_channels, uint8_t{1});
  Expect(profiler.table->stop(event.Start(profiler, communicator.profiler_context)), "stopEvent");
}

}  // namespace

void GreetProfiler(Communicator* communicator) {
  const Profiler profiler = FindProfiler();
  if (profiler.table == nullptr) return;
  Expect(Init(profiler, communicator, &communicator->profiler_wants), "init");
}

void DismissProfiler(Communicator* communicator) {
  const Profiler profiler = FindProfiler();
  if (profiler.table == nullptr || communicator->profiler_context == nullptr) return;
  Expect(profiler.table->finalize(communicator->profiler_context), "finalize");
}

void TellProfiler(const Communicator& communicator, const Operation& operation) {
  if (communicator.profiler_wants == 0 || communicator.size < 2) return;
  const Profiler profiler = FindProfiler();
  if (profiler.table == nullptr) return;
  void* group =
      ProfilerEvent(kGroup, communicator.rank).Start(profiler, communicator.profiler_context);
  if (group == nullptr) return;  // then NCCL says no more
  if (operation.kind != Kind::kMessages) {
    if ((communicator.profiler_wants & kCollective) != 0)
      TellCollective(profiler, communicator, operation);
  } else if ((communicator.profiler_wants & kMessage) != 0) {
    for (size_t i = 0; i < operation.messages.size(); ++i) TellMessage(profiler, communicator);
  }
  Expect(profiler.table->stop(group), "stopEvent");
}

}  // namespace rehearse::gpu_double
