#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_format.h"
#include "sim/schedule/schedule_json.h"

namespace rehearse {
namespace {

std::string Quoted(const std::string& text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
  });
  return is_plain ? '"' + text + '"' : nlohmann::json(text).dump();
}

template <typename Items, typename Print>
std::string ListOf(const Items& items, Print print) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + print(item);
  return "[" + text + "]";
}

// {"key": value, ...} on one line.
class ObjectText {
 public:
  void Add(std::string_view key, std::string_view value) {
    text_ += text_.size() == 1 ? "\"" : ", \"";
    text_ += key;
    text_ += "\": ";
    text_ += value;
  }
  void AddText(const char* key, const std::string& text) { Add(key, Quoted(text)); }
  template <typename Number>
  void AddNumber(const char* key, Number number) {
    Add(key, fmt::format("{}", number));
  }
  template <typename Number>
  void AddUnless(const char* key, Number number, Number usual) {
    if (number != usual) AddNumber(key, number);
  }
  bool IsEmpty() const { return text_.size() == 1; }
  void Clear() { text_.resize(1); }

  std::string OnOneLine() const { return text_ + '}'; }
  void AppendTo(std::string* text) const { text->append(text_).push_back('}'); }

 private:
  std::string text_ = "{";
};

// The same with a line for each member, at the end of a text that may have gigabytes: nothing of it
// lies anywhere else.
class ObjectLines {
 public:
  ObjectLines(std::string indent, std::string* text) : indent_(std::move(indent)), text_(*text) {
    text_ += "{\n";
  }

  // What follows in the text is the value.
  void Begin(std::string_view key) {
    if (!is_empty_) text_ += ",\n";
    is_empty_ = false;
    text_.append(indent_).append("  \"").append(key).append("\": ");
  }
  void Add(std::string_view key, std::string_view value) {
    Begin(key);
    text_ += value;
  }
  void AddText(std::string_view key, const std::string& text) { Add(key, Quoted(text)); }
  // `append` appends the text of an item to another.
  template <typename Items, typename Append>
  void AddList(std::string_view key, const Items& items, const Append& append) {
    Begin(key);
    if (items.empty()) {
      text_ += "[]";
      return;
    }
    text_ += "[\n";
    bool is_first = true;
    for (auto& item : items) {
      if (!is_first) text_ += ",\n";
      is_first = false;
      text_.append(indent_).append("    ");
      append(item, &text_);
    }
    text_.append("\n").append(indent_).append("  ]");
  }
  void End() { text_.append("\n").append(indent_).append("}"); }

 private:
  const std::string indent_;
  std::string& text_;
  bool is_empty_ = true;
};

// How things of one kind are referred to: by name where no other has it, else by place.
class References {
 public:
  template <typename Things, typename NameOf>
  References(const Things& things, NameOf name_of) {
    std::map<std::string, size_t> count;
    for (const auto& thing : things) ++count[name_of(thing)];
    for (const auto& thing : things) {
      const std::string& name = name_of(thing);
      const bool is_known = !name.empty() && count[name] == 1;
      texts_.push_back(is_known ? Quoted(name) : fmt::format("{}", texts_.size()));
    }
  }

  const std::string& At(uint32_t index) const {
    CHECK_LT(index, texts_.size());
    return texts_[index];
  }
  template <typename Ids>
  std::string List(const Ids& ids) const {
    return ListOf(ids, [&](auto id) { return At(id.index()); });
  }

 private:
  std::vector<std::string> texts_;
};

// "0-3,8,16-64:8": runs of at least three ranks that lie equally far apart.
std::string RangesOf(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    const uint32_t stride = end < ranks.size() && ranks[end] > ranks[i] ? ranks[end] - ranks[i] : 0;
    while (stride > 0 && end < ranks.size() && ranks[end] - ranks[end - 1] == stride) ++end;
    constexpr size_t kFewest = 3;
    if (end - i < kFewest) end = i + 1;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (end - i >= kFewest) {
      text += fmt::format("-{}", ranks[end - 1]);
      if (stride > 1) text += fmt::format(":{}", stride);
    }
    i = end;
  }
  return Quoted(text);
}

std::string TextOf(const std::vector<StridedAxis>& axes) {
  return ListOf(axes, [](const StridedAxis& axis) {
    return fmt::format("[{}, {}]", axis.extent, axis.stride);
  });
}

std::string TextOf(const Communicator& communicator) {
  ObjectText object;
  object.AddText("name", communicator.name());
  if (communicator.is_strided()) {
    ObjectText mesh;
    mesh.Add("members", TextOf(communicator.member_axes()));
    mesh.Add("groups", TextOf(communicator.group_axes()));
    object.Add("mesh", mesh.OnOneLine());
    return object.OnOneLine();
  }
  std::vector<std::string> groups;
  for (uint32_t group = 0; group < communicator.group_count(); ++group) {
    std::vector<uint32_t> ranks;
    for (uint32_t member = 0; member < communicator.size(); ++member)
      ranks.push_back(communicator.Rank(group, member));
    groups.push_back(RangesOf(ranks));
  }
  object.Add("groups", fmt::format("[{}]", fmt::join(groups, ", ")));
  return object.OnOneLine();
}

// The length of the shortest piece that the list is copies of.
size_t PeriodOf(const std::vector<uint32_t>& list) {
  // border[i]: the longest proper prefix of the first i + 1 that is also their suffix.
  std::vector<size_t> border(list.size());
  for (size_t i = 1; i < list.size(); ++i) {
    size_t length = border[i - 1];
    while (length > 0 && list[i] != list[length]) length = border[length - 1];
    border[i] = length + (list[i] == list[length] ? 1 : 0);
  }
  const size_t period = list.size() - border.back();
  return list.size() % period == 0 ? period : list.size();
}

std::string RunsOf(const std::vector<uint32_t>& role_of_rank, const References& roles) {
  std::vector<std::string> runs;
  const size_t period = PeriodOf(role_of_rank);
  for (size_t i = 0; i < period;) {
    size_t end = i;
    while (end < period && role_of_rank[end] == role_of_rank[i]) ++end;
    runs.push_back(fmt::format("[{}, {}]", roles.At(role_of_rank[i]), end - i));
    i = end;
  }
  return fmt::format("[{}]", fmt::join(runs, ", "));
}

std::string FactsOf(const Schedule& schedule) {
  ObjectText object;
  if (schedule.model_flops != Flops(0))
    object.AddText("model_flops", PrintExactly(schedule.model_flops));
  if (schedule.hardware_flops != Flops(0))
    object.AddText("hardware_flops", PrintExactly(schedule.hardware_flops));
  object.AddUnless("tokens", schedule.tokens, 0.0);
  if (schedule.token_name != Schedule().token_name)
    object.AddText("token_name", schedule.token_name);
  return object.IsEmpty() ? "" : object.OnOneLine();
}

class RoleWriter {
 public:
  RoleWriter(const Schedule& schedule, const Role& role, const References& communicators)
      : schedule_(schedule),
        role_(role),
        communicators_(communicators),
        streams_(role.streams, [](const Stream& stream) { return stream.name; }),
        buffers_(role.buffers, [](const Buffer& buffer) { return buffer.name; }) {
    for (uint32_t i = 0; i < role.streams.size(); ++i)
      is_named_.push_back(streams_.At(i) == Quoted(role.streams[i].name));
  }

  void Write(const std::string& indent, std::string* text) {
    ObjectLines object(indent, text);
    object.AddText("name", role_.name);
    const auto add = [&](const char* key, const auto& items, auto text_of) {
      if (items.empty()) return;
      object.AddList(key, items,
                     [&](const auto& item, std::string* all) { all->append(text_of(item)); });
    };
    if (!StreamsAreImplied()) {
      add("streams", role_.streams, [](const Stream& stream) {
        ObjectText own;
        own.AddText("name", stream.name);
        own.AddText("kind", NameIn(kStreamKindNames, stream.kind));
        return own.OnOneLine();
      });
    }
    add("regions", role_.regions, [&](const Region& region) { return TextOf(region); });
    add("buffers", role_.buffers, [&](const Buffer& buffer) { return TextOf(buffer); });
    object.AddList("ops", role_.ops, [&](const Op& op, std::string* all) { Append(op, all); });
    add("repeats", role_.repeats, [](const Repeat& repeat) { return TextOf(repeat); });
    object.End();
  }

 private:
  // Whether the reader would make the same streams from what the ops say.
  bool StreamsAreImplied() const {
    uint32_t known = 0;
    for (const Op& op : role_.ops) {
      const uint32_t stream = op.stream.index();
      if (stream < known) continue;
      if (stream > known || role_.streams[stream].kind != UsualStreamKind(op.work)) return false;
      if (!is_named_[stream]) return false;
      ++known;
    }
    return known == role_.streams.size();
  }

  void AddCuts(const char* key, const std::vector<CommunicatorId>& cut_by,
               ObjectText* object) const {
    if (!cut_by.empty()) object->Add(key, communicators_.List(cut_by));
  }

  std::string TextOf(const Region& region) const {
    ObjectText object;
    object.AddNumber("rows", region.rows.size);
    AddCuts("rows_cut_by", region.rows.cut_by, &object);
    object.AddNumber("columns", region.columns.size);
    AddCuts("columns_cut_by", region.columns.cut_by, &object);
    AddCuts("flat_by", region.flat_by, &object);
    if (region.order.parts > 1) {
      ObjectText order;
      order.AddNumber("sequence", region.order.sequence);
      order.AddNumber("parts", region.order.parts);
      order.AddNumber("block", region.order.block);
      order.Add("balanced", region.order.balanced ? "true" : "false");
      object.Add("order", order.OnOneLine());
    }
    return object.OnOneLine();
  }

  std::string TextOf(const View& view) const {
    ObjectText object;
    object.Add("of", buffers_.At(view.of.index()));
    object.AddUnless("row", view.row, uint64_t{0});
    object.AddUnless("column", view.column, uint64_t{0});
    AddCuts("rows_cut_by", view.rows_cut_by, &object);
    AddCuts("columns_cut_by", view.columns_cut_by, &object);
    object.AddUnless("rows_turned", view.rows_turned, 0u);
    return object.OnOneLine();
  }

  std::string TextOf(const Buffer& buffer) const {
    ObjectText object;
    object.AddText("name", buffer.name);
    object.AddText("kind", NameIn(kBufferKindNames, buffer.kind));
    const Buffer usual;
    if (buffer.dtype != usual.dtype) object.AddText("dtype", Name(buffer.dtype));
    if (buffer.rows != 0 || buffer.columns != 0)
      object.Add("shape", fmt::format("[{}, {}]", buffer.rows, buffer.columns));
    if (buffer.bytes != UsualBytes(buffer)) object.AddText("bytes", PrintExactly(buffer.bytes));
    object.AddUnless("region", buffer.region, kNoRegion);
    if (buffer.view) object.Add("view", TextOf(*buffer.view));
    if (buffer.on_host) object.Add("host", "true");
    if (buffer.borrowed) object.Add("borrowed", "true");
    return object.OnOneLine();
  }

  static std::string TextOf(const Repeat& repeat) {
    ObjectText object;
    object.AddNumber("begin", repeat.begin);
    object.AddNumber("end", repeat.end);
    object.AddNumber("times", repeat.times);
    if (repeat.first_buffer != 0 || repeat.end_buffer != 0) {
      object.AddNumber("first_buffer", repeat.first_buffer);
      object.AddNumber("end_buffer", repeat.end_buffer);
    }
    object.AddUnless("micro_batches", repeat.micro_batches, 1);
    object.AddUnless("back", repeat.back, 1u);
    return object.OnOneLine();
  }

  static void Add(const Compute& compute, ObjectText* object) {
    switch (compute.kind) {
      case ComputeKind::kFixed:
        object->AddText("duration", PrintExactly(compute.duration));
        break;
      case ComputeKind::kGemm: {
        ObjectText gemm;
        gemm.AddNumber("m", compute.gemm.m);
        gemm.AddNumber("n", compute.gemm.n);
        gemm.AddNumber("k", compute.gemm.k);
        if (compute.gemm.mode != Gemm().mode) gemm.AddText("mode", Name(compute.gemm.mode));
        if (compute.tuned) gemm.AddText("tuned", Name(*compute.tuned));
        gemm.AddUnless("batch", compute.gemm.batch, Gemm().batch);
        gemm.AddUnless("row_parts", compute.row_parts, 1u);
        gemm.AddUnless("column_parts", compute.column_parts, 1u);
        object->Add("gemm", gemm.OnOneLine());
        break;
      }
      case ComputeKind::kAttention:
        object->AddText("compute", "attention");
        if (compute.attention != Compute().attention)
          object->AddText("attention", Name(compute.attention));
        break;
      case ComputeKind::kMemory:
        object->AddText("compute", "memory");
        break;
      case ComputeKind::kHost:
        object->AddText("compute", "host");
        break;
    }
    const Compute usual;
    if (compute.kernel != usual.kernel) object->AddText("kernel", Name(compute.kernel));
    if (compute.dtype != usual.dtype) object->AddText("dtype", Name(compute.dtype));
    if (compute.flops != UsualFlops(compute) || compute.kind == ComputeKind::kAttention)
      object->AddText("flops", PrintExactly(compute.flops));
    if (compute.bytes != UsualBytes(compute) || compute.kind == ComputeKind::kMemory ||
        compute.kind == ComputeKind::kHost)
      object->AddText("bytes", PrintExactly(compute.bytes));
    object->AddUnless("kernels", compute.kernels, usual.kernels);
    if (compute.strided > 0) {
      object->Add("strided", fmt::format("{}", compute.strided));
      object->AddText("strided_bytes", PrintExactly(compute.strided_bytes));
    }
    if (!compute.attributes.empty()) {
      object->Add("attributes", ListOf(compute.attributes, [](double attribute) {
                    return fmt::format("{}", attribute);
                  }));
    }
  }

  void Add(const Collective& collective, ObjectText* object) const {
    object->AddText("collective", Name(collective.kind));
    object->Add("communicator", communicators_.At(collective.communicator.index()));
    if (collective.kind != CollectiveKind::kBarrier)
      object->AddText("bytes", PrintExactly(collective.bytes));
    const Collective usual;
    if (collective.dtype != usual.dtype) object->AddText("dtype", Name(collective.dtype));
    if (collective.reduction != usual.reduction)
      object->AddText("reduction", NameIn(kReductionNames, collective.reduction));
    if (collective.algorithm != UsualAlgorithm(collective.kind))
      object->AddText("algorithm", Name(collective.algorithm));
    if (collective.protocol != usual.protocol)
      object->AddText("protocol", Name(collective.protocol));
    object->AddUnless("root", collective.root, usual.root);
    if (collective.rank_share != usual.rank_share)
      object->Add("rank_share", fmt::format("{}", collective.rank_share));
    if (collective.machine_share != usual.machine_share)
      object->Add("machine_share", fmt::format("{}", collective.machine_share));
    if (collective.copied) object->Add("copied", "true");
    if (collective.pair_bytes.empty()) return;
    const uint32_t size = schedule_.communicators[collective.communicator.index()].size();
    std::vector<std::string> rows;
    for (size_t from = 0; from < collective.pair_bytes.size(); from += size) {
      std::vector<std::string> row;
      for (size_t to = 0; to < size; ++to)
        row.push_back(Quoted(PrintExactly(collective.pair_bytes[from + to])));
      rows.push_back(fmt::format("[{}]", fmt::join(row, ", ")));
    }
    object->Add("pair_bytes", fmt::format("[{}]", fmt::join(rows, ", ")));
  }

  template <typename Message>  // Send or Receive
  void AddMessage(const char* key, const Message& message, ObjectText* object) const {
    object->AddNumber(key, message.peer);
    object->Add("communicator", communicators_.At(message.communicator.index()));
    object->AddText("bytes", PrintExactly(message.bytes));
  }

  // A name means the nearest earlier op with that name.
  std::string TextOfAfter(const std::vector<OpId>& after) const {
    return ListOf(after, [&](OpId id) {
      const std::string& name = role_.ops[id.index()].name;
      const auto latest = latest_.find(name);
      const bool is_meant = !name.empty() && latest != latest_.end() && latest->second == id;
      return is_meant ? Quoted(name) : fmt::format("{}", id.index());
    });
  }

  // Whether its stream is referred to as the one that the reader would take.
  bool HasUsualStream(const Op& op) const {
    return is_named_[op.stream.index()] &&
           role_.streams[op.stream.index()].name == UsualStream(op.work, schedule_.communicators);
  }

  void Append(const Op& op, std::string* text) {
    ObjectText& object = op_text_;
    object.Clear();
    object.AddText("name", op.name);
    if (const auto* compute = std::get_if<Compute>(&op.work))
      Add(*compute, &object);
    else if (const auto* collective = std::get_if<Collective>(&op.work))
      Add(*collective, &object);
    else if (const auto* send = std::get_if<Send>(&op.work))
      AddMessage("send_to", *send, &object);
    else
      AddMessage("receive_from", std::get<Receive>(op.work), &object);
    if (!HasUsualStream(op)) object.Add("stream", streams_.At(op.stream.index()));
    if (!op.after.empty()) object.Add("after", TextOfAfter(op.after));
    if (!op.reads.empty()) object.Add("reads", buffers_.List(op.reads));
    if (!op.writes.empty()) object.Add("writes", buffers_.List(op.writes));
    const Tag usual;
    if (op.tag.phase != usual.phase) object.AddText("phase", Name(op.tag.phase));
    object.AddUnless("layer", op.tag.layer, usual.layer);
    object.AddUnless("micro_batch", op.tag.micro_batch, usual.micro_batch);
    latest_[op.name] = OpId(written_++);
    object.AppendTo(text);
  }

  const Schedule& schedule_;
  const Role& role_;
  const References& communicators_;
  References streams_;
  References buffers_;
  std::vector<bool> is_named_;  // by stream: it is referred to by its name
  ObjectText op_text_;
  // Of each name among those that are written. Names often ascend, which a tree likes.
  std::map<std::string_view, OpId> latest_;
  uint32_t written_ = 0;
};

}  // namespace

namespace {

// About as much as the text will have: what is not written to takes no memory.
size_t RoomFor(const Schedule& schedule) {
  constexpr size_t kOfOp = 192;
  constexpr size_t kOfBuffer = 96;
  size_t room = kOfOp;
  for (const Role& role : schedule.roles)
    room += kOfOp * role.ops.size() + kOfBuffer * role.buffers.size();
  return room;
}

// `done` is told of each role that has been written.
template <typename Done>
std::string Write(const Schedule& schedule, const ScheduleTitle& title, const Done& done) {
  CHECK_GT(schedule.ranks(), 0u);
  const References roles(schedule.roles, [](const Role& role) { return role.name; });
  const References communicators(schedule.communicators,
                                 [](const Communicator& one) { return one.name(); });
  std::string text;
  text.reserve(RoomFor(schedule));
  ObjectLines object("", &text);
  object.AddText("schema", kScheduleSchema);
  if (!title.name.empty()) object.AddText("name", title.name);
  if (!title.description.empty()) object.AddText("description", title.description);
  object.Add("ranks", fmt::format("{}", schedule.ranks()));
  if (schedule.roles.size() > 1) object.Add("role_of_rank", RunsOf(schedule.role_of_rank, roles));
  const std::string facts = FactsOf(schedule);
  if (!facts.empty()) object.Add("facts", facts);
  if (!schedule.communicators.empty()) {
    object.AddList("communicators", schedule.communicators,
                   [](const Communicator& one, std::string* all) { all->append(TextOf(one)); });
  }
  uint32_t written = 0;
  object.AddList("roles", schedule.roles, [&](const Role& role, std::string* all) {
    RoleWriter(schedule, role, communicators).Write("    ", all);
    done(written++);
  });
  object.End();
  text += '\n';
  return text;
}

}  // namespace

std::string WriteSchedule(const Schedule& schedule, const ScheduleTitle& title) {
  return Write(schedule, title, [](uint32_t) {});
}

std::string WriteSchedule(Schedule&& schedule, const ScheduleTitle& title) {
  return Write(schedule, title,
               [&](uint32_t role) { std::vector<Op>().swap(schedule.roles[role].ops); });
}

}  // namespace rehearse
