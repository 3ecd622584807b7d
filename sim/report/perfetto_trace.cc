// A Timeline in Perfetto's protobuf.
//
// All packets are one sequence. The first interns every name, so that a slice costs about 60 bytes.
// Tracks are plain ones nested by parent_uuid in the order of ranks and streams (on process and
// thread tracks Perfetto ignores the order that it is asked for). A slice is a begin and an end
// packet; the slices of a track are written in order, as the reader sorts by time and keeps the
// order of equal times, so a slice of no length ends before the next one begins. Times are
// picoseconds rounded down to nanoseconds. Rounding is monotone, so what did not overlap before
// does not overlap afterwards.

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "sim/base/error.h"
#include "sim/report/release.h"
#include "sim/report/text_page.h"
#include "sim/report/trace.h"
#include "sim/schedule/repeats.h"

namespace rehearse {
namespace {

using protozero::pbf_writer;

// Field numbers of github.com/google/perfetto, protos/perfetto/trace/: trace.proto,
// trace_packet.proto, interned_data/interned_data.proto, track_event/*.proto; v55.3.
namespace field {
constexpr uint32_t kTracePacket = 1;

constexpr uint32_t kPacketTimestamp = 8;
constexpr uint32_t kPacketSequenceId = 10;
constexpr uint32_t kPacketTrackEvent = 11;
constexpr uint32_t kPacketInternedData = 12;
constexpr uint32_t kPacketSequenceFlags = 13;
constexpr uint32_t kPacketTrackDescriptor = 60;

constexpr uint32_t kInternedCategories = 1;
constexpr uint32_t kInternedEventNames = 2;
constexpr uint32_t kInternedAnnotationNames = 3;
constexpr uint32_t kInternedAnnotationStrings = 29;
constexpr uint32_t kEntryId = 1;  // of each of these four
constexpr uint32_t kEntryText = 2;

constexpr uint32_t kTrackUuid = 1;
constexpr uint32_t kTrackName = 2;
constexpr uint32_t kTrackParentUuid = 5;
constexpr uint32_t kTrackCounter = 8;
constexpr uint32_t kTrackChildOrdering = 11;
constexpr uint32_t kTrackSiblingOrderRank = 12;
constexpr uint32_t kTrackSiblingMergeBehavior = 15;

constexpr uint32_t kCounterUnitName = 6;
constexpr uint32_t kCounterYAxisShareKey = 7;

constexpr uint32_t kEventCategoryId = 3;
constexpr uint32_t kEventAnnotation = 4;
constexpr uint32_t kEventType = 9;
constexpr uint32_t kEventNameId = 10;
constexpr uint32_t kEventTrackUuid = 11;
constexpr uint32_t kEventDoubleCounterValue = 44;
constexpr uint32_t kEventFlowIds = 47;
constexpr uint32_t kEventTerminatingFlowIds = 48;

constexpr uint32_t kAnnotationNameId = 1;
constexpr uint32_t kAnnotationUint = 3;
constexpr uint32_t kAnnotationInt = 4;
constexpr uint32_t kAnnotationDouble = 5;
constexpr uint32_t kAnnotationStringId = 17;
}  // namespace field

constexpr int32_t kSliceBegin = 1;  // TrackEvent.Type
constexpr int32_t kSliceEnd = 2;
constexpr int32_t kCounter = 4;
constexpr uint32_t kStateCleared = 1;  // TracePacket.SequenceFlags
constexpr uint32_t kNeedsState = 2;
constexpr int32_t kExplicitOrder = 3;  // TrackDescriptor.ChildTracksOrdering
constexpr int32_t kNeverMerge = 2;     // TrackDescriptor.SiblingMergeBehavior
constexpr uint32_t kSequence = 1;

uint64_t Nanoseconds(Time time) { return static_cast<uint64_t>(time.picoseconds() / 1000); }

// Numbers texts from 1, in the order in which they are first met.
class Interner {
 public:
  uint64_t Intern(const std::string& text) {
    const auto [entry, is_new] = ids_.try_emplace(text, texts_.size() + 1);
    if (is_new) texts_.push_back(text);
    return entry->second;
  }

  void Write(pbf_writer& interned_data, uint32_t entry_field) const {
    for (size_t i = 0; i < texts_.size(); ++i) {
      pbf_writer entry(interned_data, entry_field);
      entry.add_uint64(field::kEntryId, i + 1);
      entry.add_string(field::kEntryText, texts_[i]);
    }
  }

 private:
  std::map<std::string, uint64_t> ids_;
  std::vector<std::string> texts_;
};

struct Names {
  Interner categories;
  Interner events;
  Interner annotations;
  Interner strings;
};

// The part of a slice's begin event that all ranks, times and copies share, encoded.
struct OpEvents {
  std::string slice;
  std::string wait;  // empty for compute ops
};
struct RoleEvents {
  std::vector<OpEvents> ops;          // as they are kept
  std::vector<std::string> left_out;  // for each of the middle copies that are
};

// Writes the fields of one begin event.
class EventFields {
 public:
  EventFields(Names& names, const char* category, const std::string& name)
      : names_(names), event_(text_) {
    event_.add_enum(field::kEventType, kSliceBegin);
    event_.add_uint64(field::kEventCategoryId, names_.categories.Intern(category));
    event_.add_uint64(field::kEventNameId, names_.events.Intern(name));
  }

  void Annotate(const char* name, const std::string& value) {
    pbf_writer annotation = Open(name);
    annotation.add_uint64(field::kAnnotationStringId, names_.strings.Intern(value));
  }
  void AnnotateInt(const char* name, int64_t value) {
    pbf_writer annotation = Open(name);
    annotation.add_int64(field::kAnnotationInt, value);
  }
  // Amounts (bytes, flops) are usually whole numbers, and shorter as such.
  void AnnotateAmount(const char* name, double value) {
    constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
    pbf_writer annotation = Open(name);
    if (value >= 0 && value < kExactIntegers &&
        value == static_cast<double>(static_cast<uint64_t>(value))) {
      annotation.add_uint64(field::kAnnotationUint, static_cast<uint64_t>(value));
    } else {
      annotation.add_double(field::kAnnotationDouble, value);
    }
  }

  std::string Take() { return std::move(text_); }

 private:
  pbf_writer Open(const char* name) {
    pbf_writer annotation(event_, field::kEventAnnotation);
    annotation.add_uint64(field::kAnnotationNameId, names_.annotations.Intern(name));
    return annotation;
  }

  Names& names_;
  std::string text_;
  pbf_writer event_;
};

std::string KindOf(const Op& op) {
  if (const auto* collective = std::get_if<Collective>(&op.work)) return Name(collective->kind);
  if (std::holds_alternative<Send>(op.work)) return "send";
  if (std::holds_alternative<Receive>(op.work)) return "receive";
  return op.name;
}

OpEvents EventsOf(const Schedule& schedule, const Op& op, Names& names) {
  const CommunicatorId communicator = CommunicatorOf(op.work);
  OpEvents events;
  EventFields slice(names, communicator.IsSet() ? "communication" : "compute", op.name);
  slice.Annotate("what", Describe(schedule, op.work));
  slice.Annotate("phase", Name(op.tag.phase));
  if (op.tag.layer >= 0) slice.AnnotateInt("layer", op.tag.layer);
  if (const auto* compute = std::get_if<Compute>(&op.work)) {
    slice.AnnotateAmount("flops", compute->flops.value());
    slice.AnnotateAmount("bytes", compute->bytes.value());
  } else {
    const std::string& axis = schedule.communicators.at(communicator.index()).name();
    slice.Annotate("axis", axis);
    slice.AnnotateAmount("bytes", CommunicationBytes(op.work).value());
    EventFields wait(names, "wait", "wait: " + KindOf(op));
    wait.Annotate("for", op.name);
    wait.Annotate("axis", axis);
    events.wait = wait.Take();
  }
  events.slice = slice.Take();
  return events;
}

// Arrows between the ops of the ranks that are written. An arrow's id is its place in the order of
// its targets, plus one.
class Arrows {
 public:
  Arrows(const Schedule& schedule, const Timeline& timeline, const std::vector<uint32_t>& ranks,
         const std::vector<std::vector<MiddleCopies>>& left_out) {
    Releases releases(schedule, timeline);
    const auto is_written = [&](OpOfRank op) {
      return std::binary_search(ranks.begin(), ranks.end(), op.rank) &&
             !IsIn(left_out[schedule.role_of_rank[op.rank]], op.op);
    };
    for (const uint32_t rank : ranks) {
      const auto [first, last] = timeline.SpansOf(rank);
      for (size_t i = first; i < last; ++i) {
        const OpOfRank target{rank, timeline.spans[i].op};
        if (!is_written(target)) continue;
        const std::optional<OpOfRank> source = releases.Of(target);
        // The reader tells an arrow's ends apart by their times, so there is no arrow within one
        // nanosecond.
        if (source && is_written(*source) &&
            Nanoseconds(BeginOf(timeline, *source)) < Nanoseconds(timeline.spans[i].begin)) {
          targets_.push_back(target);
          sources_.emplace_back(*source, targets_.size());
        }
      }
    }
    std::sort(sources_.begin(), sources_.end());
  }

  static bool IsIn(const std::vector<MiddleCopies>& left_out, uint32_t position) {
    return std::any_of(left_out.begin(), left_out.end(), [&](const MiddleCopies& copies) {
      return copies.begin <= position && position < copies.end;
    });
  }

  void Write(pbf_writer& event, OpOfRank op) const {
    for (auto arrow = std::lower_bound(sources_.begin(), sources_.end(), std::pair(op, size_t{0}));
         arrow != sources_.end() && arrow->first == op; ++arrow) {
      event.add_fixed64(field::kEventFlowIds, arrow->second);
    }
    const auto target = std::lower_bound(targets_.begin(), targets_.end(), op);
    if (target != targets_.end() && *target == op) {
      event.add_fixed64(field::kEventTerminatingFlowIds,
                        static_cast<uint64_t>(target - targets_.begin()) + 1);
    }
  }

 private:
  static Time BeginOf(const Timeline& timeline, OpOfRank op) {
    const auto [first, last] = timeline.SpansOf(op.rank);
    const auto begin = timeline.spans.begin();
    const auto at = std::lower_bound(
        begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last),
        op.op, [](const Span& span, uint32_t wanted) { return span.op < wanted; });
    return at->begin;
  }

  std::vector<OpOfRank> targets_;                       // ascending
  std::vector<std::pair<OpOfRank, uint64_t>> sources_;  // sorted: from which op, the arrow's id
};

class TraceWriter {
 public:
  TraceWriter(const Schedule& schedule, const Timeline& timeline, const TraceNames& names,
              const TraceOptions& options)
      : schedule_(schedule),
        timeline_(timeline),
        names_(names),
        options_(options),
        ranks_(options.ranks),
        trace_(text_) {
    if (ranks_.empty()) {
      ranks_.resize(timeline.ranks);
      std::iota(ranks_.begin(), ranks_.end(), 0u);
    }
    CHECK(std::is_sorted(ranks_.begin(), ranks_.end()));
    for (const Role& role : schedule.roles) {
      left_out_.push_back(options.most_ops < role.OpCount()
                              ? MiddleCopiesOf(role, static_cast<uint32_t>(options.most_ops))
                              : std::vector<MiddleCopies>());
    }
  }

  std::string Write() {
    Names interned;
    std::vector<RoleEvents> events(schedule_.roles.size());
    for (size_t i = 0; i < events.size(); ++i) {
      for (const Op& op : schedule_.roles[i].ops)
        events[i].ops.push_back(EventsOf(schedule_, op, interned));
      for (const MiddleCopies& copies : left_out_[i]) {
        events[i].left_out.push_back(
            EventFields(interned, "left out",
                        Grouped(static_cast<uint64_t>(copies.micro_batches)) +
                            " micro-batches are left out")
                .Take());
      }
    }
    micro_batch_ = interned.annotations.Intern("micro_batch");
    WriteInterned(interned);
    cluster_ = AddTrack(0, Title());
    WriteRanks(events);
    WriteLinks();
    return std::move(text_);
  }

 private:
  void WriteInterned(const Names& interned) {
    pbf_writer packet(trace_, field::kTracePacket);
    packet.add_uint32(field::kPacketSequenceId, kSequence);
    packet.add_uint32(field::kPacketSequenceFlags, kStateCleared);
    pbf_writer data(packet, field::kPacketInternedData);
    interned.categories.Write(data, field::kInternedCategories);
    interned.events.Write(data, field::kInternedEventNames);
    interned.annotations.Write(data, field::kInternedAnnotationNames);
    interned.strings.Write(data, field::kInternedAnnotationStrings);
  }

  // Returns the track's uuid. Siblings are shown in the order in which they are added.
  uint64_t AddTrack(uint64_t parent, const std::string& name, const LinkRecord* counts = nullptr) {
    const uint64_t uuid = ++last_uuid_;
    pbf_writer packet(trace_, field::kTracePacket);
    packet.add_uint32(field::kPacketSequenceId, kSequence);
    pbf_writer track(packet, field::kPacketTrackDescriptor);
    track.add_uint64(field::kTrackUuid, uuid);
    track.add_string(field::kTrackName, name);
    if (parent != 0) track.add_uint64(field::kTrackParentUuid, parent);
    track.add_enum(field::kTrackChildOrdering, kExplicitOrder);
    track.add_int32(field::kTrackSiblingOrderRank, static_cast<int32_t>(uuid));
    track.add_enum(field::kTrackSiblingMergeBehavior, kNeverMerge);
    if (counts != nullptr) {
      pbf_writer counter(track, field::kTrackCounter);
      counter.add_string(field::kCounterUnitName, "GB/s");
      counter.add_string(field::kCounterYAxisShareKey, counts->kind);
    }
    return uuid;
  }

  // "gpt-20b", "gpt-20b (16 of 1,024 ranks)".
  std::string Title() const {
    std::string title = names_.title.empty() ? "cluster" : names_.title;
    if (ranks_.size() < timeline_.ranks)
      title += " (" + Grouped(ranks_.size()) + " of " + Grouped(timeline_.ranks) + " ranks)";
    return title;
  }

  void WriteRanks(const std::vector<RoleEvents>& events) {
    const Arrows arrows(schedule_, timeline_, ranks_, left_out_);
    std::map<std::string, uint64_t> nodes;
    std::vector<std::vector<uint32_t>> spans_of_stream;
    for (const uint32_t rank : ranks_) {
      const std::string node = NodeName(rank);
      if (!nodes.contains(node)) nodes[node] = AddTrack(cluster_, node);
      const uint64_t device = AddTrack(nodes[node], DeviceName(names_, rank));
      const uint32_t role = schedule_.role_of_rank.at(rank);
      const std::vector<Stream>& streams = schedule_.roles.at(role).streams;
      spans_of_stream.assign(streams.size(), {});
      const auto [first, last] = timeline_.SpansOf(rank);
      for (size_t span = first; span < last; ++span) {
        const Op& op = schedule_.roles[role].At(timeline_.spans[span].op);
        spans_of_stream.at(op.stream.index()).push_back(static_cast<uint32_t>(span));
      }
      for (size_t stream = 0; stream < streams.size(); ++stream) {
        if (spans_of_stream[stream].empty()) continue;
        WriteStream(AddTrack(device, streams[stream].name), rank, spans_of_stream[stream],
                    events[role], arrows);
      }
    }
  }

  void WriteStream(uint64_t track, uint32_t rank, const std::vector<uint32_t>& spans,
                   const RoleEvents& events, const Arrows& arrows) {
    const uint32_t role_index = schedule_.role_of_rank[rank];
    const Role& role = schedule_.roles[role_index];
    const std::vector<MiddleCopies>& left_out = left_out_[role_index];
    size_t gap = 0;  // the next in left_out
    Time free;
    for (size_t i = 0; i < spans.size(); ++i) {
      const Span& span = timeline_.spans[spans[i]];
      CHECK_LE(free.picoseconds(), span.begin.picoseconds());
      CHECK_LE(span.begin.picoseconds(), span.end.picoseconds());
      // A measured op may say that it was ready while its stream was still busy.
      const Time ready = std::max(span.ready, free);
      while (gap < left_out.size() && left_out[gap].end <= span.op) ++gap;
      if (gap < left_out.size() && left_out[gap].begin <= span.op) {
        while (i + 1 < spans.size() && timeline_.spans[spans[i + 1]].op < left_out[gap].end) ++i;
        free = timeline_.spans[spans[i]].end;
        event_text_ = events.left_out[gap];
        WriteSlice(track, Nanoseconds(ready), Nanoseconds(free));
        continue;
      }
      const OpEvents& event = events.ops[role.PlaceAt(span.op)];
      if (!event.wait.empty() && Nanoseconds(ready) < Nanoseconds(span.begin)) {
        event_text_ = event.wait;
        WriteSlice(track, Nanoseconds(ready), Nanoseconds(span.begin));
      }
      event_text_ = event.slice;
      AddDetails(role.TagAt(span.op).micro_batch, {rank, span.op}, arrows);
      WriteSlice(track, Nanoseconds(span.begin), Nanoseconds(span.end));
      free = span.end;
    }
  }

  // Adds to the event in event_text_ what differs between copies and ranks.
  void AddDetails(int32_t micro_batch, OpOfRank op, const Arrows& arrows) {
    pbf_writer event(event_text_);
    {
      pbf_writer annotation(event, field::kEventAnnotation);
      annotation.add_uint64(field::kAnnotationNameId, micro_batch_);
      annotation.add_int64(field::kAnnotationInt, micro_batch);
    }
    arrows.Write(event, op);
  }

  // Writes the slice of the event in event_text_, which lacks only its track.
  void WriteSlice(uint64_t track, uint64_t begin, uint64_t end) {
    {
      pbf_writer event(event_text_);
      event.add_uint64(field::kEventTrackUuid, track);
    }
    pbf_writer begins(trace_, field::kTracePacket);
    begins.add_uint64(field::kPacketTimestamp, begin);
    begins.add_uint32(field::kPacketSequenceId, kSequence);
    begins.add_uint32(field::kPacketSequenceFlags, kNeedsState);
    begins.add_message(field::kPacketTrackEvent, event_text_);
    begins.commit();

    pbf_writer ends(trace_, field::kTracePacket);
    ends.add_uint64(field::kPacketTimestamp, end);
    ends.add_uint32(field::kPacketSequenceId, kSequence);
    pbf_writer event(ends, field::kPacketTrackEvent);
    event.add_enum(field::kEventType, kSliceEnd);
    event.add_uint64(field::kEventTrackUuid, track);
  }

  // A time in which all ranks do what is left out.
  struct Gap {
    Time begin;
    Time end;
  };
  std::vector<Gap> Gaps() const {
    std::vector<Gap> gaps;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const std::vector<MiddleCopies>& left_out = left_out_[schedule_.role_of_rank[ranks_[i]]];
      if (i == 0) gaps.assign(left_out.size(), {Time(), kBeyondTime});
      gaps.resize(std::min(gaps.size(), left_out.size()));
      const auto [first, last] = timeline_.SpansOf(ranks_[i]);
      size_t gap = 0;
      std::vector<Gap> own(gaps.size(), {kBeyondTime, Time()});
      for (size_t span = first; span < last; ++span) {
        const Span& at = timeline_.spans[span];
        while (gap < own.size() && left_out[gap].end <= at.op) ++gap;
        if (gap == own.size() || at.op < left_out[gap].begin) continue;
        own[gap] = {std::min(own[gap].begin, at.begin), std::max(own[gap].end, at.end)};
      }
      for (size_t j = 0; j < gaps.size(); ++j) {
        gaps[j] = {std::max(gaps[j].begin, own[j].begin), std::min(gaps[j].end, own[j].end)};
      }
    }
    return gaps;
  }

  // Positions of recorded links in the timeline, in its order.
  std::vector<size_t> RecordedLinks() const {
    std::vector<size_t> links;
    for (size_t i = 0; i < timeline_.links.size(); ++i)
      if (!timeline_.links[i].loads.empty()) links.push_back(i);
    return links;
  }

  void WriteLinks() {
    const std::vector<size_t> recorded = RecordedLinks();
    std::vector<size_t> written = recorded;
    if (written.size() > options_.most_links) {
      const auto share = [this](size_t i) {
        return timeline_.links[i].bytes / timeline_.links[i].capacity;
      };
      std::stable_sort(written.begin(), written.end(),
                       [&](size_t a, size_t b) { return share(a) > share(b); });
      written.resize(options_.most_links);
      std::sort(written.begin(), written.end());
    }
    if (written.empty()) return;
    gaps_ = Gaps();
    const uint64_t links =
        AddTrack(cluster_, written.size() == recorded.size()
                               ? "links"
                               : "links (the busiest " + Grouped(written.size()) + " of " +
                                     Grouped(recorded.size()) + ")");
    for (const size_t i : written) WriteLoads(links, timeline_.links[i]);
  }

  void WriteLoads(uint64_t parent, const LinkRecord& link) {
    const std::string others =
        link.count > 1 ? " and " + Grouped(link.count - 1) + " like it" : std::string();
    const uint64_t track = AddTrack(parent, link.name + others, &link);
    const auto is_within = [](Time time, const Gap& gap) {
      return gap.begin < time && time < gap.end;
    };
    size_t gap = 0;
    for (size_t i = 0; i < link.loads.size(); ++i) {
      const uint64_t at = Nanoseconds(link.loads[i].from);
      if (i + 1 < link.loads.size()) {
        const Time next = link.loads[i + 1].from;
        // Of several values within a nanosecond, the last one counts.
        if (Nanoseconds(next) == at) continue;
        while (gap < gaps_.size() && gaps_[gap].end <= link.loads[i].from) ++gap;
        if (gap < gaps_.size() && is_within(link.loads[i].from, gaps_[gap]) &&
            is_within(next, gaps_[gap])) {
          continue;
        }
      }
      pbf_writer packet(trace_, field::kTracePacket);
      packet.add_uint64(field::kPacketTimestamp, at);
      packet.add_uint32(field::kPacketSequenceId, kSequence);
      pbf_writer event(packet, field::kPacketTrackEvent);
      event.add_enum(field::kEventType, kCounter);
      event.add_uint64(field::kEventTrackUuid, track);
      event.add_double(field::kEventDoubleCounterValue, link.loads[i].bytes_per_second / 1e9);
    }
  }

  std::string NodeName(uint32_t rank) const {
    if (rank >= names_.node_of_rank.size() || names_.node_of_rank[rank].empty()) return "node0";
    return names_.node_of_rank[rank];
  }

  const Schedule& schedule_;
  const Timeline& timeline_;
  const TraceNames& names_;
  const TraceOptions& options_;
  std::vector<uint32_t> ranks_;
  std::vector<std::vector<MiddleCopies>> left_out_;  // by role
  std::vector<Gap> gaps_;
  uint64_t micro_batch_ = 0;  // the annotation's name
  std::string text_;
  pbf_writer trace_;
  std::string event_text_;
  uint64_t last_uuid_ = 0;
  uint64_t cluster_ = 0;
};

}  // namespace

std::string DeviceName(const TraceNames& names, uint32_t rank) {
  if (rank >= names.device_of_rank.size() || names.device_of_rank[rank].empty()) {
    return "rank " + std::to_string(rank);
  }
  return names.device_of_rank[rank] + " (rank " + std::to_string(rank) + ")";
}

std::string PerfettoTrace(const Schedule& schedule, const Timeline& timeline,
                          const TraceNames& names, const TraceOptions& options) {
  CHECK_EQ(schedule.ranks(), timeline.ranks);
  return TraceWriter(schedule, timeline, names, options).Write();
}

}  // namespace rehearse
