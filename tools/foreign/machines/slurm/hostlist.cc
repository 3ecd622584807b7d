#include "tools/foreign/machines/slurm/hostlist.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {
namespace {

class Hostlist {
 public:
  Hostlist(std::string_view text, size_t most, const std::function<void(const std::string&)>& fail)
      : text_(text), most_(most), fail_(fail) {}

  std::vector<std::string> Expand() {
    std::vector<std::string> all;
    size_t begin = 0;
    int depth = 0;
    for (size_t i = 0; i <= text_.size(); ++i) {
      const char c = i < text_.size() ? text_[i] : ',';
      if (c == '[' && ++depth > 1) Fail("a bracket within a bracket");
      if (c == ']' && --depth < 0) Fail("a ] without its [");
      if (i == text_.size() && depth > 0) Fail("a [ without its ]");
      if (c != ',' || depth > 0) continue;
      const std::string_view item = text_.substr(begin, i - begin);
      if (item.empty()) Fail("an empty name");
      std::vector<std::string> names = ExpandItem(item, all.size());
      std::move(names.begin(), names.end(), std::back_inserter(all));
      begin = i + 1;
    }
    return all;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    fail_(fmt::format("found {} with {}, expected names such as node[001-016,020]", Quoted(text_),
                      what));
    CHECK(false);  // fail_ throws
  }

  // What one name with brackets stands for, in addition to `before` others.
  std::vector<std::string> ExpandItem(std::string_view item, size_t before) const {
    std::vector<std::string> names = {""};
    while (!item.empty()) {
      const size_t open = std::min(item.find('['), item.size());
      const std::string_view plain = item.substr(0, open);
      for (std::string& name : names) name += plain;
      item.remove_prefix(open);
      if (item.empty()) break;
      const size_t close = item.find(']');
      names = Combine(names, Ranges(item.substr(1, close - 1), before), before);
      item.remove_prefix(close + 1);
    }
    constexpr size_t kLongest = 64;
    for (const std::string& name : names)
      if (name.size() > kLongest) Fail(fmt::format("a name of more than {} bytes", kLongest));
    if (before + names.size() > most_) Fail(fmt::format("more than {} names", most_));
    return names;
  }

  std::vector<std::string> Combine(const std::vector<std::string>& heads,
                                   const std::vector<std::string>& tails, size_t before) const {
    if (tails.size() * heads.size() + before > most_)
      Fail(fmt::format("more than {} names", most_));
    std::vector<std::string> names;
    for (const std::string& head : heads)
      for (const std::string& tail : tails) names.push_back(head + tail);
    return names;
  }

  std::vector<std::string> Ranges(std::string_view inside, size_t before) const {
    std::vector<std::string> numbers;
    for (size_t begin = 0; begin <= inside.size();) {
      const size_t end = std::min(inside.find(',', begin), inside.size());
      const std::string_view range = inside.substr(begin, end - begin);
      const size_t dash = range.find('-');
      const std::string_view first = range.substr(0, dash);
      const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
      const uint32_t from = NumberOf(first);
      const uint32_t to = NumberOf(last);
      if (to < from) Fail(fmt::format("the backward range {}", Quoted(range)));
      if (numbers.size() + (to - from) + before >= most_)
        Fail(fmt::format("more than {} names", most_));
      for (uint32_t number = from; number <= to; ++number)
        numbers.push_back(fmt::format("{:0{}}", number, first.size()));
      begin = end + 1;
    }
    return numbers;
  }

  uint32_t NumberOf(std::string_view digits) const {
    constexpr size_t kMostDigits = 9;
    uint32_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, fault] = std::from_chars(digits.data(), end, value);
    if (digits.empty() || digits.size() > kMostDigits || fault != std::errc() || stop != end)
      Fail(fmt::format("{} in brackets", Quoted(digits)));
    return value;
  }

  const std::string_view text_;
  const size_t most_;
  const std::function<void(const std::string&)>& fail_;
};

}  // namespace

std::vector<std::string> ExpandHostlist(std::string_view text, size_t most,
                                        const std::function<void(const std::string&)>& fail) {
  return Hostlist(text, most, fail).Expand();
}

}  // namespace rehearse
