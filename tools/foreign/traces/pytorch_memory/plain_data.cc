#include "tools/foreign/traces/pytorch_memory/plain_data.h"

#include <nlohmann/json.hpp>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr size_t kMostPlainBytes = size_t{1} << 30;  // of all values, about
constexpr size_t kDeepest = 64;                      // levels of nesting in JSON

// Builds values as nlohmann's parser comes to them.
class PlainJson : public nlohmann::json_sax<nlohmann::json> {
 public:
  PlainJson(PlainData& data, const std::string& name) : data_(data), name_(name) {}

  bool null() override { return Put(data_.AddNone()); }
  bool boolean(bool value) override { return Put(data_.AddBool(value)); }
  bool number_integer(number_integer_t value) override {
    return Put(data_.AddInteger(static_cast<double>(value)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Put(data_.AddInteger(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return Put(data_.AddFloat(value));
  }
  bool string(string_t& text) override { return Put(data_.AddText(text)); }
  bool binary(binary_t& /*bytes*/) override { return false; }
  bool start_object(size_t /*count*/) override { return Open(PlainData::Kind::kDict); }
  bool key(string_t& text) override { return Put(data_.AddText(text)); }
  bool end_object() override { return Close(); }
  bool start_array(size_t /*count*/) override { return Open(PlainData::Kind::kList); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    throw Error(Place{name_, 0, ""}, "byte " + std::to_string(position) + ": this is no JSON");
  }

 private:
  bool Put(PlainData::Id value) {
    if (open_.empty())
      data_.SetRoot(value);
    else
      data_.Append(open_.back(), value);
    return true;
  }
  bool Open(PlainData::Kind kind) {
    if (open_.size() == kDeepest) throw Error(Place{name_, 0, ""}, "lists are nested too deeply");
    const PlainData::Id items = data_.AddItems(kind);
    Put(items);
    open_.push_back(items);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  PlainData& data_;
  const std::string& name_;
  std::vector<PlainData::Id> open_;
};

}  // namespace

std::optional<double> PlainData::Number(Id value) const {
  const Node& node = nodes_[value];
  const bool is_number =
      node.kind == Kind::kBool || node.kind == Kind::kInteger || node.kind == Kind::kFloat;
  return is_number ? std::optional(node.number) : std::nullopt;
}

const std::string* PlainData::Text(Id value) const {
  const Node& node = nodes_[value];
  return node.kind == Kind::kText ? &texts_[node.at] : nullptr;
}

const std::vector<PlainData::Id>& PlainData::Items(Id value) const {
  static const std::vector<Id> kNothing;
  const Node& node = nodes_[value];
  return node.kind == Kind::kList || node.kind == Kind::kDict ? items_[node.at] : kNothing;
}

std::optional<PlainData::Id> PlainData::Find(Id dict, std::string_view key) const {
  if (kind(dict) != Kind::kDict) return {};
  const std::vector<Id>& items = Items(dict);
  for (size_t i = items.size() / 2 * 2; i >= 2; i -= 2) {
    const std::string* const text = Text(items[i - 2]);
    if (text != nullptr && *text == key) return items[i - 1];
  }
  return {};
}

PlainData::Id PlainData::AddText(std::string_view text) {
  Count(sizeof(std::string) + text.size());
  texts_.emplace_back(text);
  return Add({Kind::kText, static_cast<uint32_t>(texts_.size() - 1), 0});
}

PlainData::Id PlainData::AddItems(Kind kind) {
  Count(sizeof(std::vector<Id>));
  items_.emplace_back();
  return Add({kind, static_cast<uint32_t>(items_.size() - 1), 0});
}

void PlainData::Append(Id list, Id value) {
  Count(2 * sizeof(Id));  // as vectors grow
  items_[nodes_[list].at].push_back(value);
}

PlainData::Id PlainData::Add(Node node) {
  Count(sizeof node);
  nodes_.push_back(node);
  return static_cast<Id>(nodes_.size() - 1);
}

void PlainData::Count(size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > kMostPlainBytes)
    throw Error("the values in it need more than 1 GiB of memory; record fewer events");
}

PlainData ReadPlainJson(std::string_view text, const std::string& name) {
  PlainData data;
  PlainJson json(data, name);
  nlohmann::json::sax_parse(text, &json);
  return data;
}

}  // namespace rehearse
