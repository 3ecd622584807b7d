// How a Timeline lies in Perfetto's protobuf.
//
// All packets are one sequence. The first interns every name, so that a slice costs about 60 bytes.
// Tracks are plain ones nested by parent_uuid in the order of ranks and streams (on process and
// thread tracks Perfetto ignores the order that it is asked for). A slice is a begin and an end
// packet; the slices of a track are written in their order, as the reader sorts by time and keeps
// the order of equal times: so a slice of no length ends before the next one begins. Times are
// picoseconds rounded down to nanoseconds. Rounding is monotone, so that what did not overlap
// before does not overlap afterwards.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "sim/base/error.h"
#include "sim/report/release.h"
#include "sim/report/trace.h"

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

// Texts by small numbers, from 1, in the order in which they are first met.
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

// The part of a slice's begin event that all ranks and times share, encoded.
struct OpEvents {
  std::string slice;
  std::string wait;  // empty for compute ops
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
  // Amounts (bytes, flops) are whole numbers as a rule, and shorter as such.
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

OpEvents EventsOf(const Schedule& schedule, const Role& role, uint32_t position, Names& names) {
  const Op& op = role.At(position);
  const CommunicatorId communicator = CommunicatorOf(op.work);
  OpEvents events;
  EventFields slice(names, communicator.IsSet() ? "communication" : "compute", op.name);
  slice.Annotate("what", Describe(schedule, op.work));
  slice.Annotate("phase", Name(op.tag.phase));
  if (op.tag.layer >= 0) slice.AnnotateInt("layer", op.tag.layer);
  slice.AnnotateInt("micro_batch", role.TagAt(position).micro_batch);
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

// Arrows: from where to which spans. An arrow's id is its target's position plus one.
class Arrows {
 public:
  Arrows(const Schedule& schedule, const Timeline& timeline)
      : released_by_(ReleasedBy(schedule, timeline)) {
    for (uint32_t target = 0; target < released_by_.size(); ++target) {
      uint32_t& source = released_by_[target];
      if (source == kNotReleased) continue;
      // The reader tells an arrow's ends apart by their times; an arrow within one nanosecond is
      // none.
      if (Nanoseconds(timeline.spans[source].begin) >= Nanoseconds(timeline.spans[target].begin)) {
        source = kNotReleased;
      } else {
        targets_.push_back({source, target});
      }
    }
    std::sort(targets_.begin(), targets_.end());
  }

  void Write(pbf_writer& event, uint32_t span) const {
    for (auto arrow = std::lower_bound(targets_.begin(), targets_.end(), std::pair(span, 0u));
         arrow != targets_.end() && arrow->first == span; ++arrow) {
      event.add_fixed64(field::kEventFlowIds, uint64_t{arrow->second} + 1);
    }
    if (released_by_[span] != kNotReleased) {
      event.add_fixed64(field::kEventTerminatingFlowIds, uint64_t{span} + 1);
    }
  }

 private:
  std::vector<uint32_t> released_by_;
  std::vector<std::pair<uint32_t, uint32_t>> targets_;  // sorted (source, target)
};

class TraceWriter {
 public:
  TraceWriter(const Schedule& schedule, const Timeline& timeline, const TraceNames& names)
      : schedule_(schedule), timeline_(timeline), names_(names), trace_(text_) {}

  std::string Write() {
    Names interned;
    std::vector<std::vector<OpEvents>> events(schedule_.roles.size());
    for (size_t i = 0; i < events.size(); ++i) {
      const Role& role = schedule_.roles[i];
      for (uint32_t position = 0; position < role.OpCount(); ++position) {
        events[i].push_back(EventsOf(schedule_, role, position, interned));
      }
    }
    WriteInterned(interned);
    cluster_ = AddTrack(0, names_.title.empty() ? "cluster" : names_.title);
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

  void WriteRanks(const std::vector<std::vector<OpEvents>>& events) {
    const Arrows arrows(schedule_, timeline_);
    std::map<std::string, uint64_t> nodes;
    std::vector<std::vector<uint32_t>> spans_of_stream;
    for (uint32_t rank = 0; rank < timeline_.ranks; ++rank) {
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
        WriteStream(AddTrack(device, streams[stream].name), spans_of_stream[stream], events[role],
                    arrows);
      }
    }
  }

  void WriteStream(uint64_t track, const std::vector<uint32_t>& spans,
                   const std::vector<OpEvents>& events, const Arrows& arrows) {
    Time free;
    for (const uint32_t position : spans) {
      const Span& span = timeline_.spans[position];
      CHECK_LE(free.picoseconds(), span.begin.picoseconds());
      CHECK_LE(span.begin.picoseconds(), span.end.picoseconds());
      const OpEvents& event = events[span.op];
      // A measured op may say that it was ready while its stream was still busy.
      const Time ready = std::max(span.ready, free);
      if (!event.wait.empty() && Nanoseconds(ready) < Nanoseconds(span.begin)) {
        WriteSlice(track, Nanoseconds(ready), Nanoseconds(span.begin), event.wait, nullptr, 0);
      }
      WriteSlice(track, Nanoseconds(span.begin), Nanoseconds(span.end), event.slice, &arrows,
                 position);
      free = span.end;
    }
  }

  void WriteSlice(uint64_t track, uint64_t begin, uint64_t end, const std::string& fields,
                  const Arrows* arrows, uint32_t position) {
    event_text_ = fields;
    {
      pbf_writer event(event_text_);
      event.add_uint64(field::kEventTrackUuid, track);
      if (arrows != nullptr) arrows->Write(event, position);
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

  void WriteLinks() {
    uint64_t links = 0;
    for (const LinkRecord& link : timeline_.links) {
      if (link.loads.empty()) continue;
      if (links == 0) links = AddTrack(cluster_, "links");
      const uint64_t track = AddTrack(links, link.name, &link);
      for (size_t i = 0; i < link.loads.size(); ++i) {
        const uint64_t at = Nanoseconds(link.loads[i].from);
        // Of several values within a nanosecond the last one holds.
        if (i + 1 < link.loads.size() && Nanoseconds(link.loads[i + 1].from) == at) continue;
        pbf_writer packet(trace_, field::kTracePacket);
        packet.add_uint64(field::kPacketTimestamp, at);
        packet.add_uint32(field::kPacketSequenceId, kSequence);
        pbf_writer event(packet, field::kPacketTrackEvent);
        event.add_enum(field::kEventType, kCounter);
        event.add_uint64(field::kEventTrackUuid, track);
        event.add_double(field::kEventDoubleCounterValue, link.loads[i].bytes_per_second / 1e9);
      }
    }
  }

  std::string NodeName(uint32_t rank) const {
    if (rank >= names_.node_of_rank.size() || names_.node_of_rank[rank].empty()) return "node0";
    return names_.node_of_rank[rank];
  }

  const Schedule& schedule_;
  const Timeline& timeline_;
  const TraceNames& names_;
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
                          const TraceNames& names) {
  CHECK_EQ(schedule.ranks(), timeline.ranks);
  return TraceWriter(schedule, timeline, names).Write();
}

}  // namespace rehearse
