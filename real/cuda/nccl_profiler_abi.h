// NCCL's profiler plugin interface, versions 2 to 5: its binary layout as far as operations need
// it.
//
// The four differ in the order of init's parameters and in where a collective's facts are. Pointers
// to what we do not use are void. Version 1 (NCCL 2.23) numbers algorithms by its own tables and is
// left out. Source: the debug information of NCCL 2.28.9's library, which has all of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse {

// What init asks for, and what an event is, as bits.
inline constexpr int kNcclCollectiveEvent = 1 << 1;
inline constexpr int kNcclMessageEvent = 1 << 2;

// The head of every event. Version 5 widened `type`, which the others pad: little-endian bytes are
// the same, except for the padding, which nobody has to set.
struct NcclEventHead {
  uint8_t type;
  void* parent;
  int rank;
};

struct NcclCollectiveV2 {
  const char* communicator;
  uint64_t hash;
  uint64_t number;
  const char* function;
  const void* from;
  void* to;
  size_t count;
  int root;
  const char* type;
  size_t traffic_bytes;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct NcclCollectiveV3 {
  const char* communicator;
  uint64_t hash;
  uint64_t number;
  const char* function;
  const void* from;
  void* to;
  size_t count;
  int root;
  const char* type;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

// Version 5 adds a pointer at its end.
struct NcclCollectiveV4 {
  uint64_t number;
  const char* function;
  const void* from;
  void* to;
  size_t count;
  int root;
  const char* type;
  uint8_t channels;
  uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

// A send or a receive. Versions 2 and 3 do not report their channels.
struct NcclMessageV4 {
  const char* function;
  void* data;
  const char* type;
  size_t count;
  int peer;
  uint8_t channels;
};

template <typename Collective, typename Message>
struct NcclEvent {
  NcclEventHead head;
  union {
    Collective collective;
    Message message;
  };
};
struct NcclNoMessage {};
using NcclEventV2 = NcclEvent<NcclCollectiveV2, NcclNoMessage>;
using NcclEventV3 = NcclEvent<NcclCollectiveV3, NcclNoMessage>;
using NcclEventV4 = NcclEvent<NcclCollectiveV4, NcclMessageV4>;

static_assert(offsetof(NcclEventHead, rank) == 16);
static_assert(offsetof(NcclEventV2, collective) + offsetof(NcclCollectiveV2, channels) == 104);
static_assert(offsetof(NcclEventV2, collective) + offsetof(NcclCollectiveV2, protocol) == 120);
static_assert(offsetof(NcclEventV3, collective) + offsetof(NcclCollectiveV3, channels) == 96);
static_assert(offsetof(NcclEventV3, collective) + offsetof(NcclCollectiveV3, protocol) == 112);
static_assert(offsetof(NcclEventV4, collective) + offsetof(NcclCollectiveV4, channels) == 80);
static_assert(offsetof(NcclEventV4, collective) + offsetof(NcclCollectiveV4, protocol) == 96);
static_assert(offsetof(NcclEventV4, message) + offsetof(NcclMessageV4, channels) == 60);

// What the program exports. Statuses are NCCL's: 0 is success.
template <typename Init, typename Event>
struct NcclProfilerTable {
  const char* name;
  Init* init;
  int (*start)(void* context, void** handle, const Event* event);
  int (*stop)(void* handle);
  int (*record_state)(void* handle, int state, const void* arguments);
  int (*finalize)(void* context);
};

using NcclInitV2 = int(void** context, int* wanted);
using NcclInitV4 = int(void** context, int* wanted, const char* name, uint64_t hash, int nodes,
                       int ranks, int rank, void* log);
using NcclInitV5 = int(void** context, uint64_t hash, int* wanted, const char* name, int nodes,
                       int ranks, int rank, void* log);

}  // namespace rehearse
