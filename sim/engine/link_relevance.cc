#include "sim/engine/link_relevance.h"

#include <algorithm>
#include <utility>

namespace rehearse {
namespace {

// How much load flows with one anchor can put on a link.
struct Feed {
  uint32_t anchor;
  double load;
};

class RelevanceFinder {
 public:
  explicit RelevanceFinder(const Program& program)
      : program_(program),
        set_count_(program.use_set_begin.size() - 1),
        changes_(program.links.size(), false) {
    for (const ProgramLink& link : program.links) capacity_.push_back(link.capacity.value());
    largest_capacity_ = capacity_;
    for (const LinkChange& change : program.link_changes) {
      const uint32_t link = change.link.index();
      changes_[link] = true;
      largest_capacity_[link] = std::max(largest_capacity_[link], change.factor * capacity_[link]);
    }
  }

  LinkRelevance Find() {
    FindAnchors();
    GatherFeeds();
    for (uint32_t link = 0; link < capacity_.size(); ++link) {
      if (result_.role[link] != LinkRole::kAnchor && !IsRedundant(link)) {
        result_.role[link] = LinkRole::kLazy;
        result_.has_lazy = true;
      }
    }
    if (result_.has_lazy) DropDominated();
    KeepRelevantUses();
    return std::move(result_);
  }

 private:
  std::span<const LinkUse> UsesOf(uint32_t set) const {
    return {program_.uses.data() + program_.use_set_begin[set],
            program_.uses.data() + program_.use_set_begin[set + 1]};
  }

  // For the sets that flows use; kNone for other sets and those without links.
  void FindAnchors() {
    result_.role.assign(capacity_.size(), LinkRole::kRedundant);
    std::vector<bool> used(set_count_, false);
    for (const Flow& flow : program_.flows) used[flow.use_set] = true;
    for (const uint32_t set : program_.alternatives) {
      if (set != Program::kNone) used[set] = true;
    }
    anchor_.assign(set_count_, LinkUse{LinkId(), 0});
    for (uint32_t set = 0; set < set_count_; ++set) {
      if (!used[set] || UsesOf(set).empty()) continue;
      const auto tighter = [this](const LinkUse& a, const LinkUse& b) {
        const double level_a = capacity_[a.link.index()] / a.multiplicity;
        const double level_b = capacity_[b.link.index()] / b.multiplicity;
        return level_a != level_b ? level_a < level_b : a.link < b.link;
      };
      const std::span<const LinkUse> uses = UsesOf(set);
      anchor_[set] = *std::min_element(uses.begin(), uses.end(), tighter);
      result_.role[anchor_[set].link.index()] = LinkRole::kAnchor;
    }
  }

  // feeds_[feed_begin_[l] .. [l+1]): those of link l, one for each set that crosses it.
  void GatherFeeds() {
    feed_begin_.assign(capacity_.size() + 1, 0);
    const auto for_each_feed = [this](const auto& visit) {
      for (uint32_t set = 0; set < set_count_; ++set) {
        if (!anchor_[set].link.IsSet()) continue;
        for (const LinkUse& use : UsesOf(set)) {
          if (result_.role[use.link.index()] != LinkRole::kAnchor) visit(anchor_[set], use);
        }
      }
    };
    for_each_feed(
        [this](const LinkUse&, const LinkUse& use) { ++feed_begin_[use.link.index() + 1]; });
    for (size_t link = 0; link < capacity_.size(); ++link) {
      feed_begin_[link + 1] += feed_begin_[link];
    }
    feeds_.resize(feed_begin_.back());
    std::vector<uint32_t> next(feed_begin_.begin(), feed_begin_.end() - 1);
    for_each_feed([&](const LinkUse& anchor, const LinkUse& use) {
      const uint32_t link = anchor.link.index();
      const double load = largest_capacity_[link] * use.multiplicity / anchor.multiplicity;
      feeds_[next[use.link.index()]++] = {link, load};
    });
  }

  bool IsRedundant(uint32_t link) {
    const auto first = feeds_.begin() + feed_begin_[link];
    const auto last = feeds_.begin() + feed_begin_[link + 1];
    if (first == last) return true;
    if (changes_[link]) return false;
    std::sort(first, last, [](const Feed& a, const Feed& b) {
      return a.anchor != b.anchor ? a.anchor < b.anchor : a.load > b.load;
    });
    double sum = 0;
    for (auto feed = first; feed != last; ++feed) {
      if (feed == first || feed->anchor != (feed - 1)->anchor) sum += feed->load;
    }
    return sum <= capacity_[link];
  }

  // How much of a link one unit of rate fills, for each set that crosses it; sets in order.
  struct Burden {
    uint32_t link = 0;
    std::vector<std::pair<uint32_t, double>> parts;  // set, multiplicity / capacity
  };

  std::vector<Burden> Burdens() const {
    std::vector<Burden> burdens;
    std::vector<uint32_t> place(capacity_.size(), 0);
    for (uint32_t link = 0; link < capacity_.size(); ++link) {
      if (result_.role[link] == LinkRole::kRedundant || changes_[link]) continue;
      burdens.push_back({link, {}});
      place[link] = static_cast<uint32_t>(burdens.size());
    }
    for (uint32_t set = 0; set < set_count_; ++set) {
      if (!anchor_[set].link.IsSet()) continue;
      for (const LinkUse& use : UsesOf(set)) {
        const uint32_t link = use.link.index();
        if (place[link] == 0) continue;
        burdens[place[link] - 1].parts.emplace_back(set, use.multiplicity / capacity_[link]);
      }
    }
    return burdens;
  }

  // Whether b is at least as full as a, whatever flows.
  static bool IsDominated(const Burden& a, const Burden& b) {
    auto other = b.parts.begin();
    for (const auto& [set, part] : a.parts) {
      while (other != b.parts.end() && other->first < set) ++other;
      if (other == b.parts.end() || other->first != set || other->second < part) return false;
    }
    return true;
  }

  bool IsLazy(const Burden& burden) const { return result_.role[burden.link] == LinkRole::kLazy; }

  // Of links with equal burdens one is kept, an anchor if there is one.
  std::vector<Burden> DropTwins(std::vector<Burden> burdens) {
    std::stable_sort(burdens.begin(), burdens.end(), [this](const Burden& a, const Burden& b) {
      return a.parts != b.parts ? a.parts < b.parts : IsLazy(a) < IsLazy(b);
    });
    std::vector<Burden> distinct;
    for (Burden& burden : burdens) {
      const bool is_twin = !distinct.empty() && distinct.back().parts == burden.parts;
      if (is_twin && IsLazy(burden)) {
        result_.role[burden.link] = LinkRole::kRedundant;
      } else {
        distinct.push_back(std::move(burden));
      }
    }
    return distinct;
  }

  void DropDominated() {
    const std::vector<Burden> burdens = DropTwins(Burdens());
    std::vector<std::vector<uint32_t>> of_set(set_count_);  // positions in burdens
    for (uint32_t i = 0; i < burdens.size(); ++i)
      for (const auto& part : burdens[i].parts) of_set[part.first].push_back(i);
    size_t comparisons = 0;
    for (uint32_t i = 0; i < burdens.size(); ++i) {
      if (!IsLazy(burdens[i])) continue;
      const auto rarest = std::min_element(burdens[i].parts.begin(), burdens[i].parts.end(),
                                           [&](const auto& a, const auto& b) {
                                             return of_set[a.first].size() < of_set[b.first].size();
                                           });
      for (const uint32_t j : of_set[rarest->first]) {
        if (++comparisons > kMostComparisons) return;
        if (i == j || result_.role[burdens[j].link] == LinkRole::kRedundant) continue;
        if (!IsDominated(burdens[i], burdens[j])) continue;
        result_.role[burdens[i].link] = LinkRole::kRedundant;
        break;
      }
    }
  }

  void KeepRelevantUses() {
    for (uint32_t set = 0; set < set_count_; ++set) {
      result_.use_begin.push_back(static_cast<uint32_t>(result_.uses.size()));
      KeepUses(set, LinkRole::kAnchor);
      result_.lazy_begin.push_back(static_cast<uint32_t>(result_.uses.size()));
      KeepUses(set, LinkRole::kLazy);
    }
    result_.use_begin.push_back(static_cast<uint32_t>(result_.uses.size()));
  }

  void KeepUses(uint32_t set, LinkRole role) {
    if (!anchor_[set].link.IsSet()) return;
    for (const LinkUse& use : UsesOf(set)) {
      if (result_.role[use.link.index()] == role) result_.uses.push_back(use);
    }
  }

  const Program& program_;
  const size_t set_count_;
  std::vector<double> capacity_;
  std::vector<double> largest_capacity_;  // at any time
  std::vector<bool> changes_;             // per link: its capacity, in time
  std::vector<LinkUse> anchor_;           // per use set
  std::vector<uint32_t> feed_begin_;
  std::vector<Feed> feeds_;
  LinkRelevance result_;
};

}  // namespace

LinkRelevance FindRelevantLinks(const Program& program) { return RelevanceFinder(program).Find(); }

}  // namespace rehearse
