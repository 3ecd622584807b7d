// What NCCL notes of its calls in a report of Nsight Systems: ranges of NVTX such as
// "ncclAllReduce" with a payload that has names (NCCL's src/include/nvtx_payload_schemas.h):
//
//   "NCCL communicator ID"   the same number on all of its ranks (newer versions; others note
//                            only sizes, and it is not known whose they are)
//   "Message size [bytes]"   of what one rank gives to a gather or has from a scatter; of an
//                            all-to-all, what one rank gives to one other
//   "Peer rank"              of a message, in the communicator
//   "No. of ranks", "Rank"   where a communicator begins or ends
//
// A payload is in NVTX_EVENTS.jsonText, or in .binaryData, whose fields are described in
// NVTX_PAYLOAD_SCHEMA_ENTRIES. A call's kernel is launched in its range or, where NCCL gathers
// calls (ncclGroupStart, ncclGroupEnd), later by the same thread; one kernel may do several calls.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/base/sqlite_connection.h"
#include "tools/foreign/traces/kineto/kineto_file.h"

namespace rehearse {

inline constexpr int64_t kNsysTick = 1000;  // picoseconds of a nanosecond, which nsys counts
inline constexpr int64_t kLongestNsys = 31 * 86'400'000'000'000;  // nanoseconds

struct NcclCall {
  int64_t begin = 0;  // picoseconds
  int64_t end = 0;
  int64_t thread = 0;
  std::string name;  // "ncclAllReduce"
  // Below 0: not noted.
  int64_t bytes = -1;
  int64_t peer = -1;
  int64_t ranks = -1;
  int64_t rank = -1;
  std::string communicator;  // "": not noted
};

using TextOfId = std::function<std::string(int64_t id)>;
// Those of the table NVTX_EVENTS. `text_of` finds the texts of its textIds.
std::vector<NcclCall> ReadNcclCalls(SqliteConnection* file, const TextOfId& text_of);
// What NVTX_EVENTS needs for that: a column to ask for, "" if it has none.
std::string NvtxPayloadColumn(SqliteConnection* file);

// Fills in the transfers of one process's traces, one for each device, as far as calls say what
// they were: which collective, in which communicator, how many bytes are noted (as in_elements).
void TakeNcclCalls(std::vector<NcclCall> calls, const std::vector<KinetoTrace*>& traces);

// When the reports of all ranks are read: numbers the ranks, as the communicator of all numbers
// them where that is known, and has groups and sizes as PyTorch's traces would. Kernels of
// communicators of which ranks are missing are not understood any more. Appends to `remarks`.
void CompleteNcclGroups(std::vector<KinetoTrace>* traces, std::vector<std::string>* remarks);

}  // namespace rehearse
