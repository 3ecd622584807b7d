#include "tools/foreign/traces/kineto/kineto_write.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/gzip.h"
#include "sim/report/timeline_record.h"

namespace rehearse {
namespace {

constexpr int64_t kPicosecondsOfTick = 1'000'000;  // of a trace's microsecond

std::string QuotedText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// All of its digits.
std::string Microseconds(Time time) {
  return fmt::format("{}.{:06}", time.picoseconds() / kPicosecondsOfTick,
                     time.picoseconds() % kPicosecondsOfTick);
}

// What PyTorch and NCCL call it.
struct KinetoNames {
  const char* collective;
  const char* kernel;
};
KinetoNames NamesOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return {"allreduce", "AllReduce"};
    case CollectiveKind::kAllGather:
      return {"_allgather_base", "AllGather"};
    case CollectiveKind::kReduceScatter:
      return {"_reduce_scatter_base", "ReduceScatter"};
    case CollectiveKind::kAllToAll:
      return {"all_to_all", "SendRecv"};
    case CollectiveKind::kBroadcast:
      return {"broadcast", "Broadcast"};
    case CollectiveKind::kReduce:
      return {"reduce", "Reduce"};
    case CollectiveKind::kSendReceive:
      return {"sendrecv", "SendRecv"};
    case CollectiveKind::kBarrier:
    case CollectiveKind::kToHost:  // memory copies
    case CollectiveKind::kFromHost:
      break;
  }
  return {"barrier", "AllReduce"};
}

const char* KinetoTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
      return "Double";
    case DType::kFp32:
    case DType::kTf32:
      return "Float";
    case DType::kBf16:
      return "BFloat16";
    case DType::kFp16:
      return "Half";
    case DType::kFp8:
    case DType::kFp4:
      break;
  }
  return "Byte";
}
double ElementSize(DType dtype) {
  return dtype == DType::kFp4 ? 1 : SizeOf(dtype).value();  // of what KinetoTypeOf() says
}

class RankTraceText {
 public:
  RankTraceText(const Schedule& schedule, const Timeline& timeline, const TraceNames& names,
                uint32_t rank)
      : schedule_(schedule), rank_(rank), role_(schedule.roles[schedule.role_of_rank[rank]]) {
    const auto out = std::back_inserter(text_);
    fmt::format_to(out, R"({{"schemaVersion": 1,
"rehearse": {{"title": {}, "provenance": "{}"}},
"deviceProperties": [{{"id": 0, "name": {}}}],
"distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}, "pg_count": {},
"pg_config": [)",
                   QuotedText(names.title),
                   timeline.provenance == Provenance::kMeasured ? "measured" : "simulated",
                   QuotedText(DeviceName(names, rank)), rank, timeline.ranks, Groups());
    AppendGroups();
    text_ += "]},\n\"traceEvents\": [";
    fmt::format_to(out,
                   R"({}{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", )"
                   R"("pid": {}, "tid": 0, "ts": -1.000000, "dur": {}, "args": {{}}}})",
                   "\n", kHost, Microseconds(timeline.step + Time(2 * kPicosecondsOfTick)));
    for (size_t stream = 0; stream < role_.streams.size(); ++stream) {
      fmt::format_to(out,
                     R"(,{}{{"ph": "M", "name": "thread_name", "pid": 0, "tid": {}, )"
                     R"("args": {{"name": {}}}}})",
                     "\n", NumberOf(stream), QuotedText(role_.streams[stream].name));
    }
    const auto [first, last] = timeline.SpansOf(rank);
    for (size_t i = first; i < last; ++i) AppendSpan(timeline.spans[i]);
    text_ += "\n]}\n";
  }
  std::string Take() { return std::move(text_); }

 private:
  static constexpr int kHost = 1000;  // its process

  // PyTorch's compute is on stream 7.
  static size_t NumberOf(size_t stream) { return stream + 7; }

  std::vector<uint32_t> MembersOf(const Communicator& communicator) const {
    std::vector<uint32_t> members;
    const auto own = communicator.PositionOf(rank_);
    for (uint32_t i = 0; own && i < communicator.size(); ++i)
      members.push_back(communicator.Rank(own->group, i));
    return members;
  }
  // The same on all of its members and on no others.
  std::string GroupName(const Communicator& communicator) const {
    const auto own = communicator.PositionOf(rank_);
    return communicator.group_count() == 1 || !own
               ? communicator.name()
               : fmt::format("{} {}", communicator.name(), own->group);
  }
  size_t Groups() const {
    return static_cast<size_t>(
        std::count_if(schedule_.communicators.begin(), schedule_.communicators.end(),
                      [&](const Communicator& one) { return one.PositionOf(rank_).has_value(); }));
  }
  void AppendGroups() {
    const char* separator = "";
    for (const Communicator& communicator : schedule_.communicators) {
      const std::vector<uint32_t> members = MembersOf(communicator);
      if (members.empty()) continue;
      fmt::format_to(std::back_inserter(text_),
                     R"({}{{"pg_name": {}, "pg_desc": {}, "backend_config": "cuda:nccl", )"
                     R"("pg_size": {}, "ranks": [{}]}})",
                     separator, QuotedText(GroupName(communicator)),
                     QuotedText(communicator.name()), members.size(), fmt::join(members, ", "));
      separator = ", ";
    }
  }

  // Arguments of a transfer, as PyTorch writes them.
  std::string TransferArguments(const Work& work) const {
    if (IsHostCopy(work))
      return fmt::format(R"(, "bytes": {:.0f})", CommunicationBytes(work).value());
    const Communicator& communicator = schedule_.communicators[CommunicatorOf(work).index()];
    const uint32_t size = communicator.size();
    DType dtype = DType::kBf16;
    std::string name;
    double in = CommunicationBytes(work).value();
    double out = in;
    std::string peer;
    if (const auto* collective = std::get_if<Collective>(&work)) {
      dtype = collective->dtype;
      name = NamesOf(collective->kind).collective;
      if (collective->kind == CollectiveKind::kAllGather) in /= size;
      if (collective->kind == CollectiveKind::kReduceScatter) out /= size;
    } else {
      const auto* send = std::get_if<Send>(&work);
      const auto own = communicator.PositionOf(rank_);
      const uint32_t other = send != nullptr ? send->peer : std::get<Receive>(work).peer;
      const uint32_t self = own ? own->member : 0;
      name = send != nullptr ? "send" : "recv";
      peer = fmt::format(R"(, "Src Rank": {}, "Dst Rank": {})", send != nullptr ? self : other,
                         send != nullptr ? other : self);
    }
    // In bytes if they are not whole elements.
    double element = ElementSize(dtype);
    const auto whole = [&](double bytes) {
      return static_cast<double>(static_cast<int64_t>(bytes / element)) * element == bytes;
    };
    const bool is_whole = whole(in) && whole(out);
    if (!is_whole) element = 1;
    return fmt::format(
        R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, )"
        R"("Group size": {}, )"
        R"("dtype": "{}", "Process Group Name": {}, "Process Group Description": {}, )"
        R"("Process Group Ranks": "[{}]"{})",
        name, static_cast<int64_t>(in / element), static_cast<int64_t>(out / element), size,
        is_whole ? KinetoTypeOf(dtype) : "Byte", QuotedText(GroupName(communicator)),
        QuotedText(communicator.name()), fmt::join(MembersOf(communicator), ", "), peer);
  }

  static std::string CategoryOf(const Work& work) {
    if (IsHostCopy(work)) return "gpu_memcpy";
    const auto* compute = std::get_if<Compute>(&work);
    return compute != nullptr && IsWait(*compute) ? "gpu_memset" : "kernel";
  }
  // Readers take a name with "nccl" for communication, one with "Memset" for memory.
  static std::string NameOf(const Op& op) {
    if (const auto* compute = std::get_if<Compute>(&op.work))
      return IsWait(*compute) ? "Memset (wait) " + op.name : op.name;
    const auto* collective = std::get_if<Collective>(&op.work);
    if (IsHostCopy(op.work)) {
      const bool stores = collective->kind == CollectiveKind::kToHost;
      return fmt::format("Memcpy {} {}",
                         stores ? "DtoH (Device -> Pinned)" : "HtoD (Pinned -> Device)", op.name);
    }
    return fmt::format("ncclDevKernel_{}({})",
                       collective != nullptr ? NamesOf(collective->kind).kernel : "SendRecv",
                       op.name);
  }

  void AppendSpan(const Span& span) {
    const Op& op = role_.At(span.op);
    const Tag tag = role_.TagAt(span.op);
    const CommunicatorId communicator = CommunicatorOf(op.work);
    const auto out = std::back_inserter(text_);
    const uint32_t correlation = span.op + 1;
    // Launched before anything begins: the streams, not the host, say what it waits for.
    fmt::format_to(out,
                   ",\n"
                   R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {}, )"
                   R"("tid": 0, "ts": 0.000000, "dur": 0.000000, "args": {{"correlation": {}}}}})",
                   kHost, correlation);
    fmt::format_to(
        out,
        ",\n"
        R"({{"ph": "X", "cat": "{}", "name": {}, "pid": 0, "tid": {}, "ts": {}, "dur": {}, )"
        R"("args": {{"device": 0, "context": 1, "stream": {}, "correlation": {}{}, )"
        R"("rehearse op": {}, "rehearse ready": {}, "rehearse kind": "{}", "rehearse name": {}, )"
        R"("rehearse axis": {}, "rehearse phase": "{}", "rehearse layer": {}, )"
        R"("rehearse micro_batch": {}}}}})",
        CategoryOf(op.work), QuotedText(NameOf(op)), NumberOf(op.stream.index()),
        Microseconds(span.begin), Microseconds(span.end - span.begin), NumberOf(op.stream.index()),
        correlation, communicator.IsSet() ? TransferArguments(op.work) : "", span.op,
        span.ready.picoseconds(), KindOf(op.work), QuotedText(op.name),
        QuotedText(communicator.IsSet() ? schedule_.communicators[communicator.index()].name()
                                        : ""),
        Name(tag.phase), tag.layer, tag.micro_batch);
  }

  const Schedule& schedule_;
  const uint32_t rank_;
  const Role& role_;
  std::string text_;
};

}  // namespace

std::string KinetoFileName(uint32_t rank) { return fmt::format("rank_{}.json.gz", rank); }

std::string KinetoTraceOf(const Schedule& schedule, const Timeline& timeline,
                          const TraceNames& names, uint32_t rank) {
  return Gzip(RankTraceText(schedule, timeline, names, rank).Take());
}

}  // namespace rehearse
