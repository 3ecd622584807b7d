#include "tools/foreign/traces/nsys/nsys_nccl.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 50;
constexpr int64_t kMostRanks = int64_t{1} << 24;

// ---- payloads -----------------------------------------------------------------------------------

constexpr std::string_view kCommunicator = "NCCL communicator ID";
constexpr std::pair<std::string_view, int64_t NcclCall::*> kNumbers[] = {
    {"Message size [bytes]", &NcclCall::bytes},
    {"Peer rank", &NcclCall::peer},
    {"No. of ranks", &NcclCall::ranks},
    {"Rank", &NcclCall::rank}};

void SetField(std::string_view name, uint64_t value, NcclCall* call) {
  if (name == kCommunicator && value != 0) call->communicator = fmt::format("{:#x}", value);
  for (const auto& [known, member] : kNumbers) {
    const auto most = static_cast<uint64_t>(member == &NcclCall::bytes ? kMostBytes : kMostRanks);
    if (name == known && value <= most) call->*member = static_cast<int64_t>(value);
  }
}

// Numbers stand there as such, or in quotes with commas between thousands.
void ReadJsonPayload(const std::string& text, NcclCall* call) {
  const nlohmann::json payload = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!payload.is_object()) return;
  for (const auto& [name, value] : payload.items()) {
    if (value.is_number_unsigned()) {
      SetField(name, value.get<uint64_t>(), call);
    } else if (value.is_string()) {
      std::string digits = value.get<std::string>();
      std::erase(digits, ',');
      const char* const end = digits.data() + digits.size();
      uint64_t number = 0;
      const auto [stop, fault] = std::from_chars(digits.data(), end, number);
      if (fault == std::errc() && stop == end) SetField(name, number, call);
    }
  }
}

struct PayloadField {
  std::string name;
  size_t offset = 0;
  size_t size = 0;
};
// By domain and schema.
using PayloadSchemas = std::map<std::pair<int64_t, int64_t>, std::vector<PayloadField>>;

// Of NVTX's entry types, those that NCCL has.
size_t SizeOfEntry(int64_t type) {
  switch (type) {
    case 5:   // int
    case 6:   // unsigned
    case 15:  // int32_t
    case 16:  // uint32_t
      return sizeof(uint32_t);
    case 17:  // int64_t
    case 18:  // uint64_t
    case 22:  // size_t
      return sizeof(uint64_t);
    default:
      return 0;
  }
}

bool HasTable(SqliteConnection* file, const std::string& name) {
  return !file->Ask(fmt::format("SELECT 1 FROM sqlite_schema WHERE name = '{}'", name)).empty();
}
bool HasColumn(SqliteConnection* file, const std::string& table, const std::string& name) {
  return !file->Ask(fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", table,
                                name))
              .empty();
}

PayloadSchemas ReadSchemas(SqliteConnection* file) {
  constexpr const char* kTable = "NVTX_PAYLOAD_SCHEMA_ENTRIES";
  PayloadSchemas schemas;
  for (const char* column : {"domainId", "schemaId", "type", "name", "offset"})
    if (!HasColumn(file, kTable, column)) return schemas;
  SqliteStatement rows = file->Prepare(
      fmt::format("SELECT domainId, schemaId, type, name, \"offset\" FROM {}", kTable));
  while (rows.Step()) {
    const size_t size = SizeOfEntry(rows.Whole(2));
    const int64_t offset = rows.Whole(4);
    constexpr int64_t kFarthest = 1 << 16;
    if (size == 0 || offset < 0 || offset > kFarthest) continue;
    schemas[{rows.Whole(0), rows.Whole(1)}].push_back(
        {rows.Text(3), static_cast<size_t>(offset), size});
  }
  return schemas;
}

uint64_t NumberAt(const std::string& bytes, size_t offset, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, size);  // both are little-endian
  return value;
}

// Domain, schema and size of the payload as 64 bits each, and 64 more; then the payload.
void ReadBinaryPayload(const PayloadSchemas& schemas, const std::string& bytes, NcclCall* call) {
  constexpr size_t kHead = 32;
  if (bytes.size() < kHead) return;
  const auto word = [&](size_t at) {
    return NumberAt(bytes, at * sizeof(uint64_t), sizeof(uint64_t));
  };
  const auto domain = static_cast<int64_t>(word(0) & 0xffffffff);
  const auto schema = schemas.find({domain, static_cast<int64_t>(word(1))});
  if (schema == schemas.end()) return;
  const size_t size = std::min<uint64_t>(word(2), bytes.size() - kHead);
  for (const PayloadField& field : schema->second) {
    if (field.offset + field.size <= size)
      SetField(field.name, NumberAt(bytes, kHead + field.offset, field.size), call);
  }
}

// ---- calls and kernels --------------------------------------------------------------------------

struct CallKind {
  std::string_view call;
  std::string_view kernel;  // a part of its kernel's name
  const char* collective;   // as PyTorch names it
};
constexpr CallKind kCallKinds[] = {
    {"ncclAllReduce", "_AllReduce", "allreduce"},
    {"ncclAllGather", "_AllGather", "_allgather_base"},
    {"ncclReduceScatter", "_ReduceScatter", "_reduce_scatter_base"},
    {"ncclBroadcast", "_Broadcast", "broadcast"},
    {"ncclBcast", "_Broadcast", "broadcast"},
    {"ncclReduce", "_Reduce_", "reduce"},
    {"ncclAlltoAll", "SendRecv", "all_to_all"},
    {"ncclSend", "SendRecv", "send"},
    {"ncclRecv", "SendRecv", "recv"},
};
const CallKind* KindOf(const NcclCall& call) {
  for (const CallKind& kind : kCallKinds)
    if (call.name == kind.call) return &kind;
  return nullptr;
}

struct KernelType {
  std::string_view part;  // of a kernel's name
  const char* dtype;      // as PyTorch names it
  int64_t size;
};
constexpr KernelType kKernelTypes[] = {{"_bf16", "BFloat16", 2}, {"_bfloat16", "BFloat16", 2},
                                       {"_f16", "Half", 2},      {"_half", "Half", 2},
                                       {"_f32", "Float", 4},     {"_float", "Float", 4},
                                       {"_f64", "Double", 8},    {"_double", "Double", 8}};

// What a kernel does of the calls.
void Fill(const std::vector<NcclCall>& calls, const std::string& kernel, KinetoTransfer* transfer) {
  int64_t sent = 0;
  std::set<int64_t> receivers;
  std::set<int64_t> senders;
  for (const NcclCall& call : calls) {
    if (call.name != "ncclRecv") sent += call.bytes;
    if (call.name == "ncclSend") receivers.insert(call.peer);
    if (call.name == "ncclRecv") senders.insert(call.peer);
  }
  const std::string collective = KindOf(calls.front())->collective;
  const bool is_message = collective == "send" || collective == "recv";
  if (is_message && calls.size() > 1) {
    // With each member one message out and one in, it is an all-to-all; else it is not one thing.
    const auto members = static_cast<int64_t>(receivers.size());
    if (receivers != senders || calls.size() != 2 * receivers.size() || *receivers.begin() != 0 ||
        *receivers.rbegin() != members - 1)
      return;
    transfer->collective = "all_to_allv";
    transfer->group_size = members;
  } else {
    transfer->collective = collective;
    transfer->target = calls.front().peer;
    transfer->source = calls.front().peer;
    if (collective == "recv") sent = calls.front().bytes;
  }
  transfer->group = calls.front().communicator;
  transfer->dtype = "Byte";
  transfer->in_elements = sent;
  for (const KernelType& type : kKernelTypes) {
    if (kernel.find(type.part) == std::string::npos || sent % type.size != 0) continue;
    transfer->dtype = type.dtype;
    transfer->in_elements = sent / type.size;
    break;
  }
}

struct LaunchedKernel {
  int64_t at = 0;
  KinetoTrace* trace = nullptr;
  uint32_t event = 0;
};

// The calls of one thread and the kernels that it launched, in order.
void MatchThread(const std::vector<NcclCall>& calls, const std::vector<LaunchedKernel>& kernels) {
  // Where one thread runs several devices, which of them a call is for is not noted.
  for (const LaunchedKernel& kernel : kernels)
    if (kernel.trace != kernels.front().trace) return;
  std::vector<NcclCall> pending;
  auto next = calls.begin();
  for (const LaunchedKernel& kernel : kernels) {
    while (next != calls.end() && next->begin <= kernel.at) pending.push_back(*next++);
    const KinetoEvent& event = kernel.trace->events[kernel.event];
    const std::string& name = kernel.trace->names[event.name];
    const auto fits = [&](const NcclCall& call) {
      return name.find(KindOf(call)->kernel) != std::string::npos;
    };
    const auto last = std::find_if(pending.rbegin(), pending.rend(), fits);
    if (last == pending.rend()) continue;
    std::vector<NcclCall> taken;
    if (last->end >= kernel.at) {
      // NCCL gathers nothing now, so calls before this one have no kernel.
      taken.push_back(*last);
      pending.clear();
    } else {
      const std::string communicator = last->communicator;
      std::vector<NcclCall> left;
      for (NcclCall& call : pending)
        (fits(call) && call.communicator == communicator ? taken : left).push_back(call);
      pending = std::move(left);
    }
    Fill(taken, name, &kernel.trace->transfers[event.transfer]);
  }
}

// ---- communicators ------------------------------------------------------------------------------

// What the reports of all ranks say of a communicator.
struct Known {
  std::vector<uint32_t> users;  // traces
  int64_t ranks = -1;
  std::map<int64_t, uint32_t> trace_of_rank;
};

std::map<std::string, Known> KnownCommunicators(const std::vector<KinetoTrace>& traces) {
  std::map<std::string, Known> communicators;
  for (uint32_t i = 0; i < traces.size(); ++i) {
    for (const KinetoTransfer& transfer : traces[i].transfers) {
      if (transfer.group.empty()) continue;
      std::vector<uint32_t>& users = communicators[transfer.group].users;
      if (users.empty() || users.back() != i) users.push_back(i);
    }
    for (const auto& [name, place] : traces[i].memberships) {
      Known& known = communicators[name];
      known.ranks = place.size;
      known.trace_of_rank[place.rank] = i;
    }
  }
  return communicators;
}

// Whether all ranks of a communicator are known, each by another trace.
bool IsNumbered(const Known& known, size_t traces) {
  std::set<uint32_t> distinct;
  for (const auto& [rank, trace] : known.trace_of_rank) distinct.insert(trace);
  return known.ranks >= 0 && static_cast<size_t>(known.ranks) == traces &&
         known.trace_of_rank.size() == traces && distinct.size() == traces &&
         known.trace_of_rank.rbegin()->first + 1 == known.ranks;
}

void NumberRanks(const std::map<std::string, Known>& communicators,
                 std::vector<KinetoTrace>* traces, std::vector<std::string>* remarks) {
  for (uint32_t i = 0; i < traces->size(); ++i) (*traces)[i].rank = i;
  for (const auto& [name, known] : communicators) {
    if (!IsNumbered(known, traces->size())) continue;
    for (const auto& [rank, trace] : known.trace_of_rank)
      (*traces)[trace].rank = static_cast<uint32_t>(rank);
    remarks->push_back(fmt::format("ranks are those of NCCL's communicator {}", name));
    return;
  }
  if (traces->size() > 1) {
    remarks->push_back(
        "ranks are numbered in the order of the files, then of the devices: the files do not say");
  }
}

// As PyTorch counts elements.
void CountBothWays(int64_t members, KinetoTransfer* transfer) {
  transfer->out_elements = transfer->in_elements;
  if (transfer->collective == "_allgather_base" || transfer->collective == "all_to_all")
    transfer->out_elements *= members;
  if (transfer->collective == "_reduce_scatter_base" || transfer->collective == "all_to_all")
    transfer->in_elements *= members;
}

}  // namespace

std::string NvtxPayloadColumn(SqliteConnection* file) {
  if (!HasTable(file, "NVTX_EVENTS")) return "";
  std::string columns;
  for (const char* column : {"jsonText", "binaryData"}) {
    if (!HasColumn(file, "NVTX_EVENTS", column)) continue;
    columns = columns.empty() ? column : fmt::format("coalesce({}, {})", columns, column);
  }
  return columns;
}

std::vector<NcclCall> ReadNcclCalls(SqliteConnection* file, const TextOfId& text_of) {
  const std::string payload = NvtxPayloadColumn(file);
  if (payload.empty()) return {};
  const PayloadSchemas schemas = ReadSchemas(file);
  const auto column = [&](const char* name, const char* value) {
    return HasColumn(file, "NVTX_EVENTS", name) ? value : "NULL";
  };
  // NCCL's names and payloads have less than a hundred bytes.
  SqliteStatement rows = file->Prepare(fmt::format(
      "SELECT start, \"end\", globalTid, {}, {}, {} AS payload FROM NVTX_EVENTS WHERE \"end\" IS "
      "NOT NULL AND length(payload) <= 65536 ORDER BY start",
      column("text", "substr(text, 1, 1000)"), column("textId", "textId"), payload));
  std::vector<NcclCall> calls;
  while (rows.Step()) {
    NcclCall call;
    call.name = rows.IsNull(3) ? text_of(rows.Whole(4)) : rows.Text(3);
    if (!call.name.starts_with("nccl")) continue;
    const int64_t begin = rows.Whole(0);
    const int64_t end = rows.Whole(1);
    if (begin < -kLongestNsys || begin > kLongestNsys || end < begin || end > kLongestNsys)
      continue;
    call.begin = begin * kNsysTick;
    call.end = end * kNsysTick;
    call.thread = rows.Whole(2);
    const std::string text = rows.Text(5);
    if (text.starts_with("{"))
      ReadJsonPayload(text, &call);
    else
      ReadBinaryPayload(schemas, text, &call);
    if (!call.communicator.empty()) calls.push_back(std::move(call));
  }
  return calls;
}

void TakeNcclCalls(std::vector<NcclCall> calls, const std::vector<KinetoTrace*>& traces) {
  std::map<int64_t, std::vector<NcclCall>> by_thread;
  std::map<int64_t, std::vector<LaunchedKernel>> kernels;
  std::map<int64_t, KinetoTrace*> trace_of_thread;
  for (KinetoTrace* const trace : traces) {
    for (uint32_t i = 0; i < trace->events.size(); ++i) {
      const KinetoEvent& event = trace->events[i];
      const auto launch = trace->launches.find(event.correlation);
      if (event.transfer == kNotGiven || launch == trace->launches.end()) continue;
      kernels[launch->second.thread].push_back({launch->second.at, trace, i});
      trace_of_thread[launch->second.thread] = trace;
    }
  }
  for (NcclCall& call : calls) {
    if (call.ranks > 0 && call.rank >= 0 && call.rank < call.ranks) {
      const auto found = trace_of_thread.find(call.thread);
      KinetoTrace* const trace = traces.size() == 1               ? traces.front()
                                 : found != trace_of_thread.end() ? found->second
                                                                  : nullptr;
      if (trace != nullptr)
        trace->memberships[call.communicator] = {static_cast<uint32_t>(call.rank),
                                                 static_cast<uint32_t>(call.ranks)};
    }
    if (KindOf(call) != nullptr && call.bytes >= 0)
      by_thread[call.thread].push_back(std::move(call));
  }
  for (auto& [thread, launched] : kernels) {
    std::stable_sort(launched.begin(), launched.end(),
                     [](const LaunchedKernel& a, const LaunchedKernel& b) { return a.at < b.at; });
    MatchThread(by_thread[thread], launched);
  }
}

void CompleteNcclGroups(std::vector<KinetoTrace>* traces, std::vector<std::string>* remarks) {
  const std::map<std::string, Known> communicators = KnownCommunicators(*traces);
  NumberRanks(communicators, traces, remarks);
  uint64_t untold = 0;
  for (const auto& entry : communicators) {
    const std::string& name = entry.first;
    const Known& known = entry.second;
    if (known.users.empty()) continue;
    const auto members = static_cast<int64_t>(known.users.size());
    const bool is_told = known.ranks >= 0;
    const bool is_whole = is_told ? known.ranks == members : members > 1;
    if (!is_told && is_whole) ++untold;
    if (is_told && !is_whole) {
      remarks->push_back(
          fmt::format("NCCL's communicator {} has {} ranks, of which {} are in these reports: its "
                      "kernels are waits, as long as measured",
                      name, known.ranks, members));
    }
    // Members are sorted by rank; a peer is one by its rank in the communicator.
    std::vector<uint32_t> sorted;
    for (const uint32_t trace : known.users) sorted.push_back(*(*traces)[trace].rank);
    std::sort(sorted.begin(), sorted.end());
    const auto place_of = [&](int64_t peer) {
      const auto trace = known.trace_of_rank.find(peer);
      if (trace == known.trace_of_rank.end()) return peer;
      const auto place =
          std::lower_bound(sorted.begin(), sorted.end(), *(*traces)[trace->second].rank);
      return static_cast<int64_t>(place - sorted.begin());
    };
    for (const uint32_t trace : known.users) {
      for (KinetoTransfer& transfer : (*traces)[trace].transfers) {
        if (transfer.group != name) continue;
        if (!is_whole || (transfer.group_size >= 0 && transfer.group_size != members)) {
          transfer = KinetoTransfer();
          continue;
        }
        transfer.group_size = members;
        CountBothWays(members, &transfer);
        if (transfer.source < 0) continue;
        transfer.source = place_of(transfer.source);
        transfer.target = place_of(transfer.target);
      }
    }
  }
  if (untold > 0) {
    remarks->push_back(fmt::format(
        "the sizes of {} of NCCL's communicators are not noted, since they began before "
        "the recording: taken as the ranks that use them, in their order",
        untold));
  }
}

}  // namespace rehearse
