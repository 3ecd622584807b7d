#include "sim/report/release.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr uint32_t kEverybody = 0xffffffffu;

// What an op's rendezvous is, as far as its role knows: the `ordinal`-th on the communicator, for a
// send or receive the `ordinal`-th of that direction with that peer.
struct Post {
  CommunicatorId communicator;
  uint32_t peer = kEverybody;
  bool sends = false;
  uint32_t ordinal = 0;
};

Post PostOf(const Work& work) {
  Post post;
  post.communicator = CommunicatorOf(work);
  if (const auto* send = std::get_if<Send>(&work)) {
    post.peer = send->peer;
    post.sends = true;
  } else if (const auto* receive = std::get_if<Receive>(&work)) {
    post.peer = receive->peer;
  }
  return post;
}

constexpr uint32_t kNoOp = 0xffffffffu;

// What is the same for all ranks of a role, by position.
struct RoleFacts {
  std::vector<Post> posts;
  std::vector<uint32_t> previous_on_stream;  // or kNoOp
};

RoleFacts FactsOf(const Role& role) {
  RoleFacts facts;
  std::map<std::tuple<CommunicatorId, uint32_t, bool>, uint32_t> posted;
  std::vector<uint32_t> last(role.streams.size(), kNoOp);
  for (uint32_t position = 0; position < role.OpCount(); ++position) {
    const Op& op = role.At(position);
    Post post = PostOf(op.work);
    if (post.communicator.IsSet()) {
      post.ordinal = posted[{post.communicator, post.peer, post.sends}]++;
    }
    facts.posts.push_back(post);
    uint32_t& previous = last.at(op.stream.index());
    facts.previous_on_stream.push_back(previous);
    previous = position;
  }
  return facts;
}

// One member of a rendezvous; equal keys meet.
struct Arrival {
  using Key = std::tuple<CommunicatorId, uint32_t, uint32_t, uint32_t, uint32_t>;

  CommunicatorId communicator;
  uint32_t group;
  uint32_t from;  // members of the group, or kEverybody
  uint32_t to;
  uint32_t ordinal;
  uint32_t span;

  Key key() const { return {communicator, group, from, to, ordinal}; }
};

class Releases {
 public:
  Releases(const Schedule& schedule, const Timeline& timeline)
      : schedule_(schedule), timeline_(timeline) {
    for (const Role& role : schedule.roles) facts_.push_back(FactsOf(role));
  }

  std::vector<uint32_t> Find() const {
    std::vector<uint32_t> released_by(timeline_.spans.size(), kNotReleased);
    std::vector<Arrival> arrivals = Arrivals();
    std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
      return std::tuple(a.key(), a.span) < std::tuple(b.key(), b.span);
    });
    for (auto first = arrivals.begin(); first != arrivals.end();) {
      const auto end = std::find_if(
          first, arrivals.end(), [&](const Arrival& other) { return other.key() != first->key(); });
      const auto last_ready = std::max_element(first, end, [&](const Arrival& a, const Arrival& b) {
        return SpanOf(a).ready < SpanOf(b).ready;
      });
      const uint32_t others_wait_for = LastPredecessor(SpanOf(*last_ready));
      for (; first != end; ++first) {
        const Span& span = SpanOf(*first);
        released_by[first->span] =
            span.ready == SpanOf(*last_ready).ready ? LastPredecessor(span) : others_wait_for;
      }
    }
    return released_by;
  }

 private:
  const Span& SpanOf(const Arrival& arrival) const { return timeline_.spans[arrival.span]; }

  std::vector<Arrival> Arrivals() const {
    std::vector<Arrival> arrivals;
    std::vector<std::optional<Communicator::Position>> positions;  // of the rank, by communicator
    for (uint32_t i = 0; i < timeline_.spans.size(); ++i) {
      const Span& span = timeline_.spans[i];
      if (i == 0 || timeline_.spans[i - 1].rank != span.rank) {
        positions.clear();
        for (const Communicator& communicator : schedule_.communicators) {
          positions.push_back(communicator.PositionOf(span.rank));
        }
      }
      const Post& post = facts_.at(schedule_.role_of_rank.at(span.rank)).posts.at(span.op);
      if (!post.communicator.IsSet()) continue;
      const uint32_t communicator = post.communicator.index();
      if (schedule_.communicators.at(communicator).size() == 1) continue;
      CHECK(positions[communicator].has_value());
      const auto [group, member] = *positions[communicator];
      Arrival arrival{post.communicator, group, post.peer, post.peer, post.ordinal, i};
      if (post.peer != kEverybody) (post.sends ? arrival.from : arrival.to) = member;
      arrivals.push_back(arrival);
    }
    return arrivals;
  }

  // The last to end of what the span's op comes after; of several, a dependency rather than the op
  // before it on its stream.
  uint32_t LastPredecessor(const Span& span) const {
    const uint32_t role = schedule_.role_of_rank[span.rank];
    uint32_t last = kNotReleased;
    const auto consider = [&](uint32_t position) {
      const uint32_t candidate = Find(span.rank, position);
      if (candidate == kNotReleased) return;
      if (last == kNotReleased || timeline_.spans[candidate].end > timeline_.spans[last].end) {
        last = candidate;
      }
    };
    for (const uint32_t before : schedule_.roles[role].AfterAt(span.op)) consider(before);
    const uint32_t previous = facts_[role].previous_on_stream[span.op];
    if (previous != kNoOp) consider(previous);
    return last;
  }

  uint32_t Find(uint32_t rank, uint32_t position) const {
    const auto at =
        std::lower_bound(timeline_.spans.begin(), timeline_.spans.end(), std::pair(rank, position),
                         [](const Span& span, std::pair<uint32_t, uint32_t> wanted) {
                           return std::pair(span.rank, span.op) < wanted;
                         });
    if (at == timeline_.spans.end() || at->rank != rank || at->op != position) return kNotReleased;
    return static_cast<uint32_t>(at - timeline_.spans.begin());
  }

  const Schedule& schedule_;
  const Timeline& timeline_;
  std::vector<RoleFacts> facts_;
};

}  // namespace

std::vector<uint32_t> ReleasedBy(const Schedule& schedule, const Timeline& timeline) {
  CHECK_LT(timeline.spans.size(), size_t{kNotReleased});
  return Releases(schedule, timeline).Find();
}

}  // namespace rehearse
