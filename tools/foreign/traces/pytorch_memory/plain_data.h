// Numbers, texts, lists and dictionaries that Python wrote: by pickle (protocols 0 to 5; tuples and
// sets are read as lists) or as JSON. Nothing that a pickle asks to be called is called.
//
// Values are shared as pickle shares them: a memory snapshot names the same list of frames for
// thousands of allocations. A list may contain itself; nobody walks further than keys lead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

class PlainData {
 public:
  using Id = uint32_t;  // of a value
  enum class Kind : uint8_t { kNone, kBool, kInteger, kFloat, kText, kList, kDict };

  Kind kind(Id value) const { return nodes_[value].kind; }
  Id root() const { return root_; }

  // The number, also of a float and of true; nothing for what is none.
  std::optional<double> Number(Id value) const;
  // The text; nothing for what is none.
  const std::string* Text(Id value) const;
  // A list's values, or a dictionary's keys and values in turn; empty for what is neither.
  const std::vector<Id>& Items(Id value) const;
  // Of a dictionary, the last value with this key.
  std::optional<Id> Find(Id dict, std::string_view key) const;

  Id AddNone() { return Add({Kind::kNone, 0, 0}); }
  Id AddBool(bool value) { return Add({Kind::kBool, 0, value ? 1.0 : 0.0}); }
  Id AddInteger(double value) { return Add({Kind::kInteger, 0, value}); }  // exact up to 2^53
  Id AddFloat(double value) { return Add({Kind::kFloat, 0, value}); }
  Id AddText(std::string_view text);
  Id AddItems(Kind kind);
  void Append(Id list, Id value);
  void SetRoot(Id value) { root_ = value; }

 private:
  struct Node {
    Kind kind;
    uint32_t at;  // in texts_ or items_
    double number;
  };
  // Throws Error when all values together need more memory than kMostPlainBytes.
  Id Add(Node node);
  void Count(size_t bytes);

  std::vector<Node> nodes_;
  std::vector<std::string> texts_;
  std::vector<std::vector<Id>> items_;
  size_t bytes_ = 0;
  Id root_ = 0;
};

// Throws Error, naming `name` and the byte, for what is damaged, cut off or no plain data.
PlainData ReadPickle(std::string_view bytes, const std::string& name);
PlainData ReadPlainJson(std::string_view text, const std::string& name);

}  // namespace rehearse
