#include "tools/foreign/traces/kineto/kineto_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/text_stream.h"
#include "sim/base/visible_text.h"
#include "sim/report/timeline_fields.h"
#include "tools/foreign/traces/kept_bytes.h"
#include "tools/foreign/traces/kernel_names.h"
#include "tools/foreign/traces/name_pattern.h"

namespace rehearse {
namespace {

constexpr double kKinetoTick = 1e6;  // picoseconds of a microsecond
// A month: all of a trace's events begin within it, and its times fit the clock.
constexpr double kLongestTrace = 2.6e12;
// Times that are this large are counted from another beginning (1970).
constexpr double kFarMicroseconds = 1e10;
constexpr size_t kDeepestTrace = 64;

enum class EventKey : uint8_t {
  kPhase,
  kCategory,
  kName,
  kThread,
  kBegin,
  kDuration,
  kStream,
  kDevice,
  kCorrelation,
  kCollective,
  kInElements,
  kOutElements,
  kGroupSize,
  kDType,
  kGroup,
  kRanks,
  kSequence,
  kSource,
  kTarget,
  kOwnOp,
  kOwnReady,
  kOwnKind,
  kOwnName,
  kOwnAxis,
  kOwnPhase,
  kOwnLayer,
  kOwnMicroBatch,
  kCount,
  kNone = kCount,
};
using Keys = std::unordered_map<std::string, EventKey>;

const Keys& KeysOfEvents() {
  static const Keys keys = {{"ph", EventKey::kPhase},  {"cat", EventKey::kCategory},
                            {"name", EventKey::kName}, {"tid", EventKey::kThread},
                            {"ts", EventKey::kBegin},  {"dur", EventKey::kDuration}};
  return keys;
}
const Keys& KeysOfArguments() {
  static const Keys keys = {{"stream", EventKey::kStream},
                            {"device", EventKey::kDevice},
                            {"correlation", EventKey::kCorrelation},
                            {"Collective name", EventKey::kCollective},
                            {"In msg nelems", EventKey::kInElements},
                            {"Out msg nelems", EventKey::kOutElements},
                            {"Group size", EventKey::kGroupSize},
                            {"dtype", EventKey::kDType},
                            {"Process Group Name", EventKey::kGroup},
                            {"Process Group Ranks", EventKey::kRanks},
                            {"Seq", EventKey::kSequence},
                            {"Src Rank", EventKey::kSource},
                            {"Dst Rank", EventKey::kTarget},
                            {"rehearse op", EventKey::kOwnOp},
                            {"rehearse ready", EventKey::kOwnReady},
                            {"rehearse kind", EventKey::kOwnKind},
                            {"rehearse name", EventKey::kOwnName},
                            {"rehearse axis", EventKey::kOwnAxis},
                            {"rehearse phase", EventKey::kOwnPhase},
                            {"rehearse layer", EventKey::kOwnLayer},
                            {"rehearse micro_batch", EventKey::kOwnMicroBatch}};
  return keys;
}

enum class Category : uint8_t { kKernel, kCopy, kLaunch, kAnnotation, kDeviceRange, kHost, kOther };
// Older profilers write "Kernel", "Memcpy", "Memset", "Runtime" and "Operator".
Category CategoryOf(const std::string& name) {
  static const std::unordered_map<std::string, Category> categories = {
      {"kernel", Category::kKernel},
      {"Kernel", Category::kKernel},
      {"gpu_memcpy", Category::kCopy},
      {"gpu_memset", Category::kCopy},
      {"Memcpy", Category::kCopy},
      {"Memset", Category::kCopy},
      {"memcpy", Category::kCopy},
      {"memset", Category::kCopy},
      {"cuda_runtime", Category::kLaunch},
      {"cuda_driver", Category::kLaunch},
      {"hip_runtime", Category::kLaunch},
      {"hip_driver", Category::kLaunch},
      {"Runtime", Category::kLaunch},
      {"Driver", Category::kLaunch},
      {"user_annotation", Category::kAnnotation},
      {"gpu_user_annotation", Category::kDeviceRange},
      {"cpu_op", Category::kHost},
      {"Operator", Category::kHost}};
  const auto found = categories.find(name);
  return found == categories.end() ? Category::kOther : found->second;
}

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

// A JSON text, character by character, for a parser that keeps each token, and what lies before it,
// until the next one: of many blanks it sees one, and no token may be longer than a trace's own
// are, so that no text takes more memory than a piece of it.
class JsonCharacters {
 public:
  explicit JsonCharacters(TextStream* text) : text_(*text) {}

  bool AtEnd() { return text_.AtEnd(); }
  const char& Current() const { return text_.Current(); }
  // False if the token has become too long.
  bool Next() {
    const char c = text_.Current();
    const bool was_number = is_number_;
    is_number_ = false;
    if (is_string_) {
      is_string_ = c != '"' || is_escaped_;
      is_escaped_ = c == '\\' && !is_escaped_;
    } else if (c == '"') {
      is_string_ = true;
      token_ = 0;
    } else if ((c >= '0' && c <= '9') || c == '-') {
      is_number_ = true;
      if (!was_number) token_ = 0;
    }
    text_.Next();
    if (!is_string_ && IsBlank(c)) {
      while (!text_.AtEnd() && IsBlank(text_.Current())) text_.Next();
    }
    return ++token_ <= kLargestToken;
  }

  static constexpr uint64_t kLargestToken = uint64_t{4} << 20;

 private:
  TextStream& text_;
  bool is_string_ = false;
  bool is_escaped_ = false;
  bool is_number_ = false;
  uint64_t token_ = 0;
};

// "[0, 1, ..., 28, ..., 63]"
KinetoRanks RanksOf(std::string_view text) {
  KinetoRanks ranks;
  ranks.is_whole = text.find("...") == std::string_view::npos;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    uint32_t rank = 0;
    const auto [next, problem] = std::from_chars(at, end, rank);
    if (problem == std::errc()) ranks.listed.push_back(rank);
    at = problem == std::errc() ? next : at + 1;
  }
  ranks.is_whole = ranks.is_whole && !ranks.listed.empty();
  return ranks;
}

// A value of an event, as far as it is used.
struct KinetoValue {
  bool is_given = false;
  bool is_text = false;
  double number = 0;
  std::string text;
};

class KinetoReader {
 public:
  KinetoReader(const std::string& path, const KinetoOptions& options)
      : stream_(path),
        characters_(&stream_),
        communication_("--communication", options.communication),
        step_name_("--step-name", options.step_name) {
    trace_.file = path;
    values_.resize(static_cast<size_t>(EventKey::kCount));
  }

  KinetoTrace Read() {
    nlohmann::json::sax_parse(Characters(this), Characters(), this);
    Attach();
    if (!has_events_) Fail("found no \"traceEvents\", expected a trace of PyTorch's profiler");
    trace_.bytes = stream_.offset();
    return std::move(trace_);
  }

  // The interface of json_sax.
  bool null() { return true; }
  bool boolean(bool /*value*/) { return true; }
  bool number_integer(int64_t value) { return Number(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) { return Number(static_cast<double>(value)); }
  bool number_float(double value, const std::string& /*text*/) { return Number(value); }
  bool string(std::string& value) {
    if (inside_ == Inside::kEvent || inside_ == Inside::kArguments) {
      if (key_ == EventKey::kNone) return true;
      KinetoValue& own = values_[static_cast<size_t>(key_)];
      own.is_given = own.is_text = true;
      std::swap(own.text, value);
      if (key_ == EventKey::kCategory) category_ = CategoryOf(own.text);
    } else if (inside_ == Inside::kGroup && word_ == "pg_name") {
      group_ = value;
    } else if (inside_ == Inside::kGroup && word_ == "ranks") {
      group_ranks_ = RanksOf(value);
    } else if (inside_ == Inside::kOwn && word_ == "title") {
      trace_.title = VisibleText(value);
    } else if (inside_ == Inside::kOwn && word_ == "provenance") {
      trace_.is_simulated = value == "simulated";
    }
    return true;
  }
  bool binary(nlohmann::json::binary_t& /*value*/) { return true; }

  bool start_object(size_t /*size*/) {
    Push(Enter(false));
    if (inside_ == Inside::kEvent) {
      for (KinetoValue& value : values_) value.is_given = value.is_text = false;
      category_ = Category::kOther;
    } else if (inside_ == Inside::kGroup) {
      group_.clear();
      group_ranks_ = KinetoRanks();
    } else if (inside_ == Inside::kOwn) {
      trace_.is_own = true;
    }
    return true;
  }
  bool end_object() {
    if (inside_ == Inside::kEvent) Take();
    if (inside_ == Inside::kGroup && !group_.empty()) {
      Keep<KinetoRanks>(group_.size() + group_ranks_.listed.size() * sizeof(uint32_t));
      trace_.groups[group_] = group_ranks_;
    }
    Pop();
    return true;
  }
  bool start_array(size_t /*size*/) {
    Push(Enter(true));
    if (inside_ == Inside::kEvents) has_events_ = true;
    if (inside_ == Inside::kGroupRanks) group_ranks_.is_whole = true;
    return true;
  }
  bool end_array() {
    Pop();
    return true;
  }
  bool key(std::string& key) {
    if (inside_ == Inside::kEvent) {
      key_ = Find(KeysOfEvents(), key);
      is_arguments_ = key_ == EventKey::kNone && key == "args";
    } else if (inside_ == Inside::kArguments) {
      const bool is_wanted = category_ == Category::kKernel || category_ == Category::kCopy ||
                             category_ == Category::kLaunch ||
                             (category_ == Category::kHost && IsCollectiveCall());
      key_ = is_wanted ? Find(KeysOfArguments(), key) : EventKey::kNone;
    } else if (inside_ != Inside::kOther) {
      std::swap(word_, key);
    }
    return true;
  }
  bool parse_error(size_t /*position*/, const std::string& token,
                   const nlohmann::json::exception& complaint) {
    const bool is_end = stream_.AtEnd();
    if (is_end) Fail("the text ends in the middle; it may be truncated");
    const std::string_view what = complaint.what();
    const size_t dash = what.rfind("; expected ");
    Fail(fmt::format("found {}, which is not JSON{}", VisibleText(token.substr(0, kMostToken)),
                     dash == std::string_view::npos ? "" : VisibleText(what.substr(dash))));
    return false;
  }

 private:
  static constexpr size_t kMostToken = 40;
  enum class Inside : uint8_t {
    kNothing,  // before the document
    kTop,
    kEvents,
    kEvent,
    kArguments,
    kRanks,  // an array in the arguments
    kDistributed,
    kGroups,
    kGroup,
    kGroupRanks,
    kOwn,
    kOther,
  };

  // The text for the parser, of which all copies read on. None is the end.
  class Characters {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Characters() = default;
    explicit Characters(KinetoReader* reader) : reader_(reader) {}

    reference operator*() const { return reader_->characters_.Current(); }
    Characters& operator++() {
      if (!reader_->characters_.Next()) reader_->FailToken();
      return *this;
    }
    friend bool operator==(const Characters& a, const Characters& b) {
      return a.IsAtEnd() == b.IsAtEnd();
    }

   private:
    bool IsAtEnd() const { return reader_ == nullptr || reader_->characters_.AtEnd(); }

    KinetoReader* reader_ = nullptr;
  };

  static EventKey Find(const Keys& keys, const std::string& key) {
    const auto found = keys.find(key);
    return found == keys.end() ? EventKey::kNone : found->second;
  }

  // What the object or array that begins here is.
  Inside Enter(bool is_array) const {
    switch (inside_) {
      case Inside::kNothing:
        return is_array ? Inside::kEvents : Inside::kTop;  // a bare list of events is a trace too
      case Inside::kTop:
        if (is_array) return word_ == "traceEvents" ? Inside::kEvents : Inside::kOther;
        if (word_ == "distributedInfo") return Inside::kDistributed;
        return word_ == "rehearse" ? Inside::kOwn : Inside::kOther;
      case Inside::kEvents:
        return is_array ? Inside::kOther : Inside::kEvent;
      case Inside::kEvent:
        return !is_array && is_arguments_ ? Inside::kArguments : Inside::kOther;
      case Inside::kArguments:
        return is_array && key_ == EventKey::kRanks ? Inside::kRanks : Inside::kOther;
      case Inside::kDistributed:
        return is_array && word_ == "pg_config" ? Inside::kGroups : Inside::kOther;
      case Inside::kGroups:
        return is_array ? Inside::kOther : Inside::kGroup;
      case Inside::kGroup:
        return is_array && word_ == "ranks" ? Inside::kGroupRanks : Inside::kOther;
      default:
        return Inside::kOther;
    }
  }
  void Push(Inside inside) {
    if (stack_.size() == kDeepestTrace)
      Fail(fmt::format("found more than {} levels of nesting", kDeepestTrace));
    stack_.push_back(inside_);
    inside_ = inside;
    if (inside == Inside::kRanks) {
      KinetoValue& own = values_[static_cast<size_t>(EventKey::kRanks)];
      own.is_given = own.is_text = true;
      own.text.clear();
    }
  }
  void Pop() {
    inside_ = stack_.back();
    stack_.pop_back();
  }

  bool Number(double value) {
    if (inside_ == Inside::kEvent || inside_ == Inside::kArguments) {
      if (key_ == EventKey::kNone) return true;
      KinetoValue& own = values_[static_cast<size_t>(key_)];
      own.is_given = true;
      own.is_text = false;
      own.number = value;
    } else if (inside_ == Inside::kRanks) {
      values_[static_cast<size_t>(EventKey::kRanks)].text += fmt::format("{} ", value);
      RefuseLongList(values_[static_cast<size_t>(EventKey::kRanks)].text.size());
    } else if (inside_ == Inside::kGroupRanks) {
      group_ranks_.listed.push_back(Rank(value));
      RefuseLongList(group_ranks_.listed.size() * sizeof(uint32_t));
    } else if (inside_ == Inside::kDistributed && word_ == "rank") {
      trace_.rank = Rank(value);
    } else if (inside_ == Inside::kDistributed && word_ == "world_size") {
      trace_.world = Rank(value);
    }
    return true;
  }
  uint32_t Rank(double value) const {
    constexpr double kMost = 1 << 24;
    if (!(value >= 0 && value <= kMost) || value != std::floor(value))
      Fail(fmt::format("found {} at \"{}\" of distributedInfo, expected ranks", value, word_));
    return static_cast<uint32_t>(value);
  }

  const KinetoValue& Value(EventKey key) const { return values_[static_cast<size_t>(key)]; }
  std::string Text(EventKey key) const {
    const KinetoValue& value = Value(key);
    if (!value.is_given) return "";
    return value.is_text ? value.text : fmt::format("{}", value.number);
  }
  // Also reads numbers in quotes; -1 if there is none.
  int64_t Whole(EventKey key) const {
    constexpr double kMost = 0x1p62;
    const KinetoValue& value = Value(key);
    if (!value.is_given) return -1;
    if (!value.is_text)
      return std::abs(value.number) < kMost ? static_cast<int64_t>(value.number) : -1;
    int64_t number = -1;
    std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
    return number;
  }
  double Microseconds(EventKey key, const char* name) const {
    const KinetoValue& value = Value(key);
    double number = value.number;
    if (value.is_text) {
      const char* const end = value.text.data() + value.text.size();
      if (std::from_chars(value.text.data(), end, number).ptr != end) number = NAN;
    }
    if (!value.is_given || std::isnan(number))
      FailEvent(fmt::format("expected \"{}\" in microseconds", name));
    return number;
  }
  int64_t Begin() {
    constexpr double kLatestBase = 0x1p62;
    double at = Microseconds(EventKey::kBegin, "ts");
    if (!has_base_ && std::abs(at) > kFarMicroseconds && std::abs(at) < kLatestBase)
      trace_.base = static_cast<int64_t>(std::floor(at));
    has_base_ = true;
    at -= static_cast<double>(trace_.base);
    if (std::abs(at) > kLongestTrace)
      FailEvent("begins more than a month before or after the first event: its clock jumps");
    return std::llround(at * kKinetoTick);
  }
  int64_t Duration() const {
    const double duration = Microseconds(EventKey::kDuration, "dur");
    if (duration < 0)
      FailEvent(fmt::format("ends {} us before it begins: its clock runs backwards", -duration));
    if (duration > kLongestTrace) FailEvent("takes more than a month");
    return std::llround(duration * kKinetoTick);
  }

  void Take() {
    if (Text(EventKey::kPhase) != "X") return;
    switch (category_) {
      case Category::kKernel:
      case Category::kCopy:
        TakeDevice();
        return;
      case Category::kLaunch:
        if (const int64_t correlation = Whole(EventKey::kCorrelation); correlation > 0) {
          Keep<KinetoLaunch>(kBytesOfNode);
          trace_.launches[correlation] = {Begin(), Whole(EventKey::kThread)};
        }
        return;
      case Category::kAnnotation:
      case Category::kHost:
        TakeHost();
        return;
      case Category::kDeviceRange:
        if (!TakeLabel()) CountAsNotUsed("gpu_user_annotation");
        return;
      case Category::kOther:
        CountAsNotUsed(Text(EventKey::kCategory));
        return;
    }
  }

  // Older profilers write annotations as operators.
  void TakeHost() {
    const std::string& name = Value(EventKey::kName).text;
    const bool is_step = step_name_ ? step_name_.IsIn(name) : name.starts_with("ProfilerStep#");
    const bool is_update = name.starts_with("Optimizer.step#");
    if (is_step || is_update) {
      KinetoRange range = {name, Begin(), 0, Whole(EventKey::kThread)};
      range.end = range.begin + Duration();
      Keep<KinetoRange>(name.size());
      (is_step ? trace_.steps : trace_.updates).push_back(std::move(range));
      return;
    }
    if (name.starts_with("autograd::engine::")) {
      std::vector<int64_t>& threads = trace_.backward_threads;
      const int64_t thread = Whole(EventKey::kThread);
      constexpr size_t kMostThreads = 1000;  // which are looked through; a process has a few
      if (threads.size() < kMostThreads &&
          std::find(threads.begin(), threads.end(), thread) == threads.end())
        threads.push_back(thread);
    }
    if (!TakeLabel()) CountAsNotUsed(Text(EventKey::kCategory));
  }

  bool IsCollectiveCall() const {
    return Value(EventKey::kName).is_given && Value(EventKey::kName).text == "record_param_comms";
  }

  // What c10d says of its collectives: a range "nccl:all_reduce", or an operator that has what
  // newer profilers write at the kernel.
  bool TakeLabel() {
    const std::string& name = Value(EventKey::kName).text;
    const bool is_range = name.starts_with("nccl:");
    if (!is_range && !(IsCollectiveCall() && Value(EventKey::kCollective).is_given)) return false;
    KinetoLabel label;
    label.begin = Begin();
    label.end = label.begin + Duration();
    label.thread = Whole(EventKey::kThread);
    label.is_on_device = category_ == Category::kDeviceRange;
    label.transfer = TakeTransfer();
    KinetoTransfer& transfer = trace_.transfers.back();
    if (transfer.collective.empty()) transfer.collective = name.substr(name.find(':') + 1);
    Keep<KinetoLabel>();
    trace_.labels.Add(label);
    return true;
  }

  void TakeDevice() {
    KinetoEvent event;
    event.offset = stream_.offset();
    event.begin = Begin();
    event.end = event.begin + Duration();
    event.correlation = Whole(EventKey::kCorrelation);
    constexpr uint64_t kStreams = uint64_t{1} << 32;
    int64_t stream = Whole(EventKey::kStream);
    if (stream < 0) stream = std::max<int64_t>(Whole(EventKey::kThread), 0);
    event.stream =
        static_cast<uint64_t>(std::max<int64_t>(Whole(EventKey::kDevice), 0)) * kStreams +
        static_cast<uint64_t>(stream);
    const std::string& name = Value(EventKey::kName).text;
    event.is_copy = category_ == Category::kCopy;
    const auto [place, is_new] =
        place_of_name_.emplace(name, static_cast<uint32_t>(trace_.names.size()));
    if (is_new) {
      Keep<std::string>(kBytesOfNode + 2 * name.size());
      trace_.names.push_back(VisibleText(name));
      communicates_.push_back(communication_.IsIn(name) ||
                              (!event.is_copy && CommunicationOfKernel(name)));
    }
    event.name = place->second;
    if (Value(EventKey::kCollective).is_given || communicates_[event.name])
      event.transfer = TakeTransfer();
    if (trace_.is_own && Value(EventKey::kOwnOp).is_given) event.own = TakeOwn();
    Keep<KinetoEvent>();
    trace_.events.Add(event);
  }

  // Kernels that say nothing of their collective have what the innermost range around their launch,
  // or around themselves, says.
  void Attach() {
    if (trace_.labels.empty()) return;
    using Key = std::pair<bool, int64_t>;
    std::map<Key, std::vector<const KinetoLabel*>> by_thread;
    for (const KinetoLabel& label : trace_.labels)
      by_thread[{label.is_on_device, label.thread}].push_back(&label);
    for (auto& entry : by_thread) {
      std::stable_sort(entry.second.begin(), entry.second.end(),
                       [](const auto* a, const auto* b) { return a->begin < b->begin; });
    }
    const auto find = [&](const Key& key, int64_t at) -> const KinetoLabel* {
      const auto own = by_thread.find(key);
      if (own == by_thread.end()) return nullptr;
      auto next = std::upper_bound(
          own->second.begin(), own->second.end(), at,
          [](int64_t time, const KinetoLabel* label) { return time < label->begin; });
      // Ranges nest, but not deeply: an operator in an annotation.
      for (int tried = 0; tried < 4 && next != own->second.begin(); ++tried) {
        --next;
        if (at < (*next)->end) return *next;
      }
      return nullptr;
    };
    for (const KinetoEvent& event : trace_.events) {
      if (event.transfer == kNotGiven || !trace_.transfers[event.transfer].collective.empty())
        continue;
      const auto launch = trace_.launches.find(event.correlation);
      const KinetoLabel* label = nullptr;
      if (launch != trace_.launches.end())
        label = find({false, launch->second.thread}, launch->second.at);
      if (label == nullptr)
        label = find({true, static_cast<int64_t>(event.stream & 0xffffffffu)}, event.begin);
      if (label != nullptr) trace_.transfers[event.transfer] = trace_.transfers[label->transfer];
    }
  }

  uint32_t TakeTransfer() {
    KinetoTransfer transfer;
    transfer.collective = Text(EventKey::kCollective);
    transfer.dtype = Text(EventKey::kDType);
    transfer.group = Text(EventKey::kGroup);
    transfer.ranks = RanksOf(Text(EventKey::kRanks));
    transfer.group_size = Whole(EventKey::kGroupSize);
    transfer.in_elements = Whole(EventKey::kInElements);
    transfer.out_elements = Whole(EventKey::kOutElements);
    transfer.sequence = Whole(EventKey::kSequence);
    transfer.source = Whole(EventKey::kSource);
    transfer.target = Whole(EventKey::kTarget);
    Keep<KinetoTransfer>(transfer.collective.size() + transfer.dtype.size() +
                         transfer.group.size() + transfer.ranks.listed.size() * sizeof(uint32_t));
    trace_.transfers.push_back(std::move(transfer));
    return static_cast<uint32_t>(trace_.transfers.size() - 1);
  }

  uint32_t TakeOwn() {
    KinetoOwn own;
    constexpr int64_t kMostOps = int64_t{1} << 31;
    const int64_t op = Whole(EventKey::kOwnOp);
    if (op < 0 || op >= kMostOps) FailEvent("expected the place of an op at \"rehearse op\"");
    own.op = static_cast<uint32_t>(op);
    own.ready = Time(Whole(EventKey::kOwnReady));
    own.kind = VisibleText(Text(EventKey::kOwnKind));
    own.name = VisibleText(Text(EventKey::kOwnName));
    own.axis = VisibleText(Text(EventKey::kOwnAxis));
    const std::string phase = Text(EventKey::kOwnPhase);
    for (const Phase one : kRecordedPhases) {
      if (phase == Name(one)) own.phase = one;
    }
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    own.layer = static_cast<int32_t>(std::clamp<int64_t>(Whole(EventKey::kOwnLayer), -1, kMost));
    own.micro_batch =
        static_cast<int32_t>(std::clamp<int64_t>(Whole(EventKey::kOwnMicroBatch), 0, kMost));
    Keep<KinetoOwn>(own.kind.size() + own.name.size() + own.axis.size());
    trace_.owns.push_back(std::move(own));
    return static_cast<uint32_t>(trace_.owns.size() - 1);
  }

  // What a node of a hash table takes beside the value.
  static constexpr uint64_t kBytesOfNode = 32;

  template <typename Entry>
  void Keep(uint64_t bytes_of_texts = 0) {
    if (!kept_.TakeEntry<Entry>(bytes_of_texts)) Fail(KeptBytes::Complaint());
  }
  void CountAsNotUsed(const std::string& category) {
    const auto [known, is_new] = trace_.not_used.emplace(category, 0);
    if (is_new) Keep<uint64_t>(kBytesOfNode + category.size());
    ++known->second;
  }
  void RefuseLongList(size_t bytes) const {
    if (bytes > JsonCharacters::kLargestToken)
      Fail(fmt::format("found a list of ranks of more than {} MiB",
                       JsonCharacters::kLargestToken >> 20));
  }

  std::string Where() const {
    return fmt::format("{}: {}", trace_.file,
                       trace_.rank ? fmt::format("rank {}, ", *trace_.rank) : "");
  }
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(fmt::format("{}byte {}: {}", Where(), stream_.offset(), what));
  }
  [[noreturn]] void FailToken() const {
    Fail(fmt::format("found a string, or a piece without strings and numbers, of more than {} MiB",
                     JsonCharacters::kLargestToken >> 20));
  }
  [[noreturn]] void FailEvent(const std::string& what) const {
    throw Error(fmt::format("{}event \"{}\" before byte {}: {}", Where(),
                            VisibleText(Value(EventKey::kName).text), stream_.offset(), what));
  }

  TextStream stream_;
  JsonCharacters characters_;
  NamePattern communication_;
  NamePattern step_name_;
  KinetoTrace trace_;
  std::vector<Inside> stack_;
  Inside inside_ = Inside::kNothing;
  std::string word_;  // the latest key outside of events
  EventKey key_ = EventKey::kNone;
  bool is_arguments_ = false;
  bool has_events_ = false;
  bool has_base_ = false;
  Category category_ = Category::kOther;
  std::vector<KinetoValue> values_;  // of the event, by key
  std::string group_;
  KinetoRanks group_ranks_;
  std::unordered_map<std::string, uint32_t> place_of_name_;
  std::vector<bool> communicates_;  // by name
  KeptBytes kept_;
};

}  // namespace

KinetoTrace ReadKineto(const std::string& path, const KinetoOptions& options) {
  return KinetoReader(path, options).Read();
}

std::string KinetoPlace(const KinetoTrace& trace, const KinetoEvent& event) {
  return fmt::format("{}: rank {}, event \"{}\" before byte {}", trace.file, trace.rank.value_or(0),
                     trace.names[event.name], event.offset);
}

}  // namespace rehearse
