#include "tools/foreign/traces/pytorch_memory/memory_snapshot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/read_options.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/traces/pytorch_memory/plain_data.h"

namespace rehearse {
namespace {

using Id = PlainData::Id;

constexpr double kBlock = 512;     // bytes of the allocator's smallest block
constexpr double kLatest = 1e17;   // microseconds since 1970: three thousand years
constexpr double kLargest = 1e15;  // bytes that anything can have

constexpr const char* kUnknown = "before the first event, or at an unknown place";

double InBlocks(double bytes) { return std::ceil(bytes / kBlock) * kBlock; }

// ---- What the file holds ------------------------------------------------------------------------

std::string FromBase64(std::string_view text) {
  std::array<int8_t, 256> digits{};
  digits.fill(-1);
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kDigits.size(); ++i)
    digits[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const int digit = digits[static_cast<uint8_t>(letter)];
    if (digit < 0) break;  // padding
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}

// The page has the pickle in it: [{"name": "snapshot.pickle", "base64": "gASV..."}].
std::string PickleOfPage(std::string_view page, const std::string& name) {
  constexpr std::string_view kKey = "\"base64\": \"";
  const size_t key = page.find(kKey);
  if (key == std::string_view::npos)
    throw Error(Place{name, 0, ""},
                "a page without a snapshot; expected what trace_plot of PyTorch's "
                "_memory_viz.py writes");
  const size_t begin = key + kKey.size();
  const size_t end = page.find('"', begin);
  return FromBase64(page.substr(begin, end == std::string_view::npos ? end : end - begin));
}

PlainData ReadPlain(std::string_view bytes, const std::string& name) {
  std::string unpacked;
  if (IsGzip(bytes)) {
    unpacked = Gunzip(bytes, kLargestDocument);
    bytes = unpacked;
  }
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const char letter = first == std::string_view::npos ? '\0' : bytes[first];
  std::string pickle;
  if (letter == '<') {
    pickle = PickleOfPage(bytes, name);
    bytes = pickle;
  } else if (letter == '{' || letter == '[') {
    return ReadPlainJson(bytes, name);
  }
  // A version, or at once the dictionary: empty and filled later, or above a mark.
  const bool is_pickle =
      !bytes.empty() && std::string_view("\x80}(").find(bytes[0]) != std::string_view::npos;
  if (!is_pickle) {
    throw Error(Place{name, 0, ""},
                "neither a pickle, nor JSON, nor a page of either; expected what "
                "torch.cuda.memory._dump_snapshot() writes");
  }
  return ReadPickle(bytes, name);
}

// ---- Events -------------------------------------------------------------------------------------

enum class Action : uint8_t { kAlloc, kAsked, kFreed, kGrow, kShrink, kRefused, kOther };

Action ActionOf(const std::string& name) {
  if (name == "alloc") return Action::kAlloc;
  if (name == "free_requested") return Action::kAsked;
  if (name == "free_completed") return Action::kFreed;
  if (name == "segment_alloc" || name == "segment_map") return Action::kGrow;
  if (name == "segment_free" || name == "segment_unmap") return Action::kShrink;
  if (name == "oom") return Action::kRefused;
  return Action::kOther;
}

struct Event {
  Action action = Action::kOther;
  double address = 0;
  double size = 0;
  double microseconds = -1;
  std::optional<Id> frames;
};

struct Block {
  double size = 0;
  bool is_asked_back = false;
  std::optional<Id> frames;
};
using Blocks = std::unordered_map<double, Block>;  // by address

class Reader {
 public:
  Reader(const PlainData& data, const std::string& name) : data_(data), name_(name) {
    const auto segments = data_.Find(data_.root(), "segments");
    const auto traces = data_.Find(data_.root(), "device_traces");
    if (!segments || !traces) {
      throw Error(Place{name_, 0, ""},
                  "no snapshot of PyTorch 2.0 or later; expected a dictionary with "
                  "\"segments\" and \"device_traces\"");
    }
    segments_ = *segments;
    traces_ = data_.Items(*traces);
  }

  MemorySnapshot Read(std::optional<uint32_t> asked) {
    const std::vector<uint32_t> devices = Devices();
    if (devices.empty())
      throw Error(Place{name_, 0, ""}, "the snapshot has no device that did anything");
    if (asked && std::find(devices.begin(), devices.end(), *asked) == devices.end()) {
      throw Error(Place{name_, 0, ""}, fmt::format("there is no device {}; the snapshot has {}",
                                                   *asked, fmt::join(devices, ", ")));
    }
    std::optional<MemorySnapshot> most;
    for (const uint32_t device : devices) {
      if (asked && device != *asked) continue;
      MemorySnapshot snapshot = ReadDevice(device);
      if (!most || snapshot.reserved > most->reserved) most = std::move(snapshot);
    }
    for (const uint32_t device : devices)
      if (device != most->device) most->others.push_back(device);
    return std::move(*most);
  }

 private:
  double Number(Id dict, std::string_view key) const {
    const auto value = data_.Find(dict, key);
    const auto number = value ? data_.Number(*value) : std::nullopt;
    if (!number || !(std::abs(*number) <= 1e20)) {
      throw Error(Place{name_, 0, ""},
                  fmt::format("a segment, block or event has no number \"{}\"; expected "
                              "a snapshot of PyTorch 2.0 or later",
                              key));
    }
    return *number;
  }
  double Size(Id dict, std::string_view key) const {
    const double size = Number(dict, key);
    if (!(size >= 0 && size <= kLargest))
      throw Error(Place{name_, 0, ""},
                  fmt::format("\"{}\" is {:g}; expected 0 to 1e15 bytes", key, size));
    return size;
  }
  const std::string& Text(Id dict, std::string_view key) const {
    static const std::string kNone;
    const auto value = data_.Find(dict, key);
    const std::string* const text = value ? data_.Text(*value) : nullptr;
    return text == nullptr ? kNone : *text;
  }

  std::vector<uint32_t> Devices() const {
    std::set<uint32_t> devices;
    for (const Id segment : data_.Items(segments_)) {
      const double device = Number(segment, "device");
      if (!(device >= 0 && device < kMostSnapshotDevices))
        throw Error(Place{name_, 0, ""}, fmt::format("a segment is on device {:g}", device));
      devices.insert(static_cast<uint32_t>(device));
    }
    for (size_t i = 0; i < std::min<size_t>(traces_.size(), kMostSnapshotDevices); ++i)
      if (!data_.Items(traces_[i]).empty()) devices.insert(static_cast<uint32_t>(i));
    return {devices.begin(), devices.end()};
  }

  Event EventOf(Id value) const {
    Event event;
    event.action = ActionOf(Text(value, "action"));
    if (event.action == Action::kOther) return event;
    event.size = Size(value, "size");
    if (event.action == Action::kRefused) return event;
    event.address = Number(value, "addr");
    if (const auto time = data_.Find(value, "time_us")) {
      const double microseconds = data_.Number(*time).value_or(-1);
      if (microseconds >= 0 && microseconds <= kLatest) event.microseconds = microseconds;
    }
    event.frames = data_.Find(value, "frames");
    return event;
  }

  // Blocks that live at the end, by address, and what is reserved then.
  Blocks AtTheEnd(uint32_t device, double* reserved) const {
    Blocks blocks;
    for (const Id segment : data_.Items(segments_)) {
      if (Number(segment, "device") != device) continue;
      *reserved += Size(segment, "total_size");
      double address = Number(segment, "address");
      const auto of_segment = data_.Find(segment, "blocks");
      if (!of_segment) continue;
      for (const Id block : data_.Items(*of_segment)) {
        const double size = Size(block, "size");
        const std::string& state = Text(block, "state");
        if (state.starts_with("active")) {
          const bool has_request = data_.Find(block, "requested_size").has_value();
          const double asked = has_request ? Size(block, "requested_size") : size;
          blocks[address] = {asked, state != "active_allocated", data_.Find(block, "frames")};
        }
        address += size;
      }
    }
    return blocks;
  }

  // The innermost place of the user's program, or of PyTorch's in Python if there is none.
  std::string Where(const std::optional<Id>& frames) const {
    std::string inner;
    if (!frames) return kUnknown;
    for (const Id frame : data_.Items(*frames)) {
      const std::string& file = Text(frame, "filename");
      if (!file.ends_with(".py")) continue;
      const auto line = data_.Find(frame, "line");
      const double number = line ? data_.Number(*line).value_or(0) : 0;
      const size_t slash = file.rfind('/');
      const std::string place = VisibleText(
          fmt::format("{}:{:.0f} {}", file.substr(slash == std::string::npos ? 0 : slash + 1),
                      number, Text(frame, "name")));
      const bool is_torch = file.find("/torch/") != std::string::npos;
      if (!is_torch) return inner.empty() ? place : fmt::format("{}, in {}", inner, place);
      if (inner.empty()) inner = place;
    }
    return inner.empty() ? kUnknown : inner;
  }

  // Blocks that were there before the first event: those that are freed or live at the end, and
  // that no event asked for.
  static Blocks BeforeFirst(const std::vector<Event>& events, const Blocks& at_the_end) {
    Blocks before;
    Blocks since;
    for (const Event& event : events) {
      if (event.action == Action::kAlloc) {
        since[event.address] = {event.size, false, event.frames};
      } else if (event.action == Action::kFreed && since.erase(event.address) == 0) {
        before.emplace(event.address, Block{event.size, false, {}});
      }
    }
    for (const auto& [address, block] : at_the_end)
      if (!since.contains(address)) before.emplace(address, Block{block.size, false, block.frames});
    return before;
  }

  // What is allocated while the events happen.
  struct State {
    Blocks blocks;
    double allocated = 0;
    double active = 0;
    double reserved = 0;

    void Happen(const Event& event) {
      const auto found = blocks.find(event.address);
      switch (event.action) {
        case Action::kAlloc:
          if (found != blocks.end()) Forget(found);  // its end was not written down
          blocks[event.address] = {event.size, false, event.frames};
          allocated += InBlocks(event.size);
          active += InBlocks(event.size);
          break;
        case Action::kAsked:
          if (found != blocks.end()) AskBack(found->second);
          break;
        case Action::kFreed:
          if (found != blocks.end()) Forget(found);
          break;
        case Action::kGrow:
          reserved += event.size;
          break;
        case Action::kShrink:
          reserved -= event.size;
          break;
        case Action::kRefused:
        case Action::kOther:
          break;
      }
    }

   private:
    void AskBack(Block& block) {
      if (!block.is_asked_back) allocated -= InBlocks(block.size);
      block.is_asked_back = true;
    }
    void Forget(Blocks::iterator block) {
      AskBack(block->second);
      active -= InBlocks(block->second.size);
      blocks.erase(block);
    }
  };

  static State First(const std::vector<Event>& events, const Blocks& at_the_end, double reserved) {
    State state;
    state.blocks = BeforeFirst(events, at_the_end);
    for (const auto& [address, block] : state.blocks) state.allocated += InBlocks(block.size);
    state.active = state.allocated;
    for (const Event& event : events) {
      if (event.action == Action::kGrow) reserved -= event.size;
      if (event.action == Action::kShrink) reserved += event.size;
    }
    state.reserved = std::max(reserved, state.active);
    return state;
  }

  void FindLargest(const Blocks& blocks, MemorySnapshot* snapshot) const {
    constexpr size_t kMost = 10;
    std::map<Id, SnapshotPlace> of_frames;  // pickle shares them
    constexpr Id kNoFrames = 0xffffffffu;
    for (const auto& [address, block] : blocks) {
      if (block.is_asked_back) continue;
      SnapshotPlace& place = of_frames[block.frames.value_or(kNoFrames)];
      ++place.blocks;
      place.bytes += Bytes(InBlocks(block.size));
      ++snapshot->living;
    }
    std::map<std::string, SnapshotPlace> places;
    for (const auto& [frames, part] : of_frames) {
      const std::string where =
          frames == kNoFrames ? Where(std::nullopt) : Where(std::optional(frames));
      SnapshotPlace& place = places[where];
      place.where = where;
      place.blocks += part.blocks;
      place.bytes += part.bytes;
    }
    for (const auto& [where, place] : places) snapshot->largest.push_back(place);
    std::stable_sort(
        snapshot->largest.begin(), snapshot->largest.end(),
        [](const SnapshotPlace& a, const SnapshotPlace& b) { return a.bytes > b.bytes; });
    snapshot->places = snapshot->largest.size();
    if (snapshot->largest.size() > kMost) snapshot->largest.resize(kMost);
  }

  MemorySnapshot ReadDevice(uint32_t device) const {
    MemorySnapshot snapshot;
    snapshot.device = device;
    std::vector<Event> events;
    if (device < traces_.size())
      for (const Id event : data_.Items(traces_[device])) events.push_back(EventOf(event));
    snapshot.events = events.size();
    double began = -1;
    for (const Event& event : events) {
      if (event.microseconds < 0) continue;
      if (began < 0) began = event.microseconds;
      snapshot.lasted = std::max(snapshot.lasted, Seconds(1e-6 * (event.microseconds - began)));
    }
    snapshot.has_times = began >= 0;
    if (const auto settings = data_.Find(data_.root(), "allocator_settings")) {
      if (const auto expandable = data_.Find(*settings, "expandable_segments"))
        snapshot.is_expandable = data_.Number(*expandable).value_or(0) != 0;
    }

    double reserved = 0;
    const Blocks at_the_end = AtTheEnd(device, &reserved);
    State state = First(events, at_the_end, reserved);
    snapshot.before = Bytes(state.allocated);
    Fullest fullest(state.allocated, state.reserved);
    snapshot.active = Bytes(state.active);
    snapshot.reserved = Bytes(state.reserved);
    Seconds now;
    for (size_t i = 0; i < events.size(); ++i) {
      state.Happen(events[i]);
      if (events[i].microseconds >= 0) now = Seconds(1e-6 * (events[i].microseconds - began));
      snapshot.active = std::max(snapshot.active, Bytes(state.active));
      snapshot.reserved = std::max(snapshot.reserved, Bytes(state.reserved));
      if (events[i].action == Action::kRefused) snapshot.refused = Bytes(events[i].size);
      fullest.Add({now, i + 1, Bytes(state.allocated), Bytes(state.reserved)});
    }
    snapshot.moments = fullest.Moments();
    snapshot.peak = fullest.peak;

    state = First(events, at_the_end, reserved);
    for (size_t i = 0; i < snapshot.peak.event; ++i) state.Happen(events[i]);
    FindLargest(state.blocks, &snapshot);
    return snapshot;
  }

  // The fullest moment of all, and of each of at most kMostMoments intervals.
  struct Fullest {
    Fullest(double allocated, double reserved) : peak{{}, 0, Bytes(allocated), Bytes(reserved)} {}

    void Add(const SnapshotMoment& moment) {
      if (moment.allocated > peak.allocated) peak = moment;
      if (of_interval == 0 || moment.allocated > moments.back().allocated) {
        if (of_interval == 0) moments.push_back(moment);
        moments.back() = moment;
      }
      if (++of_interval < length) return;
      of_interval = 0;
      if (moments.size() < kMostMoments) return;
      for (size_t i = 0; i < moments.size() / 2; ++i) {
        const SnapshotMoment& first = moments[2 * i];
        const SnapshotMoment& second = moments[2 * i + 1];
        moments[i] = first.allocated >= second.allocated ? first : second;
      }
      moments.resize(moments.size() / 2);
      length *= 2;
    }
    std::vector<SnapshotMoment> Moments() const { return moments; }

    SnapshotMoment peak;
    std::vector<SnapshotMoment> moments;
    size_t length = 1;       // of an interval, in events
    size_t of_interval = 0;  // events in the last one so far
  };

  const PlainData& data_;
  const std::string& name_;
  Id segments_ = 0;
  std::vector<Id> traces_;
};

}  // namespace

MemorySnapshot ReadMemorySnapshot(std::string_view bytes, const std::string& name,
                                  std::optional<uint32_t> device) {
  const PlainData data = ReadPlain(bytes, name);
  return Reader(data, name).Read(device);
}

}  // namespace rehearse
